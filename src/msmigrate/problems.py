"""What users are told: exit statuses, and one family of errors that the commands print without a traceback."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of both commands (contract, section 2)."""

    DONE = 0
    NO = 1
    """The answer is "no": findings, files differ, a loss refused, a config that cannot run, a run that failed."""
    USAGE = 2
    UNREADABLE = 3
    """An input cannot be read, or an output cannot be written."""


class UserError(Exception):
    """A failure the user can act on: the message is a sentence with numbers; `status` is the command's exit status."""

    status: Exit = Exit.NO

    def __init__(self, message: str, *, status: Exit | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status


class UnreadableError(UserError):
    """An input that cannot be read: missing, not UTF-8, YAML syntax, duplicate key, empty, too deep, too large."""

    status = Exit.UNREADABLE

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, problem: str | None = None
    ) -> None:
        super().__init__(message)
        self.problem = problem or message
        """The message without the place."""
        self.line = line
        """Place in the input, from 1, where there is one; the message has it too."""
        self.column = column


class UsageError(UserError):
    """A command line that does not make sense."""

    status = Exit.USAGE
