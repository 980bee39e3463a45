"""Which steps with a non-finite loss or gradient norm a run survives."""

from dataclasses import dataclass


@dataclass(slots=True)
class SkipRule:
    """training.use_skip_step_on_nan with training.max_consecutive_skipped_steps; `limit` 0 is no limit."""

    enabled: bool
    limit: int
    in_a_row: int = 0

    def updated(self) -> None:
        """An update was done: the count starts again."""
        self.in_a_row = 0

    def may_pass(self) -> bool:
        """Whether the run goes on after a step without update; such a step is counted."""
        if not self.enabled or (self.limit and self.in_a_row >= self.limit):
            return False
        self.in_a_row += 1
        return True
