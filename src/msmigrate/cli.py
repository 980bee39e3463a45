"""The entry point `msmigrate`: exit statuses, and no traceback without --debug."""

import os
import sys

from msmigrate import __version__
from msmigrate.problems import Exit, UserError
from msmigrate.streams import print_result, say, speak_utf8


def main() -> None:
    """Run the command line; exits with the contract's statuses."""
    try:
        _run()
    except UserError as error:
        if "--debug" in sys.argv:
            raise
        say(f"msmigrate: {error}")
        sys.exit(error.status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains about the pipe once more at exit
        sys.exit(Exit.NO)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        print_result(f"msmigrate {__version__}\n".encode())
        return
    from msmigrate.app import app

    speak_utf8()
    app()
