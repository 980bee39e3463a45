"""The entry point `msmigrate`: exit statuses, no traceback without --debug, Ctrl-C safe before anything is imported."""

import os
import sys

from msmigrate.interrupts import exit_on_interrupt, raise_on_interrupt


def main() -> None:
    """Run the command line; exits with the contract's statuses, or 130 after Ctrl-C."""
    exit_on_interrupt()
    from msmigrate.problems import Exit, UserError
    from msmigrate.streams import say

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
    from msmigrate import __version__
    from msmigrate.streams import print_result, speak_utf8

    if sys.argv[1:] == ["--version"]:
        print_result(f"msmigrate {__version__}\n".encode())
        return
    from msmigrate.app import app

    speak_utf8()
    raise_on_interrupt()  # which the app answers with status 130, once a file half written is put away
    try:
        app()
    finally:
        exit_on_interrupt()
