"""The entry point of `msrt`: Ctrl-C and the standard streams are made safe before anything else is imported."""

import sys

from msmigrate.interrupts import exit_on_interrupt


def main() -> None:
    """Run the command line; exits with a status of contract section 2, or 130 after Ctrl-C."""
    exit_on_interrupt()
    from msmigrate.problems import UserError
    from msmigrate.streams import say
    from msrt.commands import app
    from msrt.streams import end_output, prepare_streams

    prepare_streams()
    try:
        try:
            app()
        finally:
            exit_on_interrupt()
            end_output()
    except UserError as error:  # of standard output
        say(str(error))
        sys.exit(error.status)
