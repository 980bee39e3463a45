"""The launch line of the manual's section 11: `python run_mindformer.py --mode 1 --config FILE`."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))

from msmigrate.interrupts import exit_on_interrupt
from msrt.cli import main as msrt

HANDED_ON = "--set KEY=VALUE (repeatable), --output DIR, --resume auto|PATH, --expert-mesh product|nested, --debug"


def main() -> None:
    """Train FILE as `msrt train FILE` does; further options are handed on to it. Mode 0 is refused (status 1)."""
    exit_on_interrupt()
    parser = argparse.ArgumentParser(
        description="Train from a pynative.yaml.",
        epilog=f"Handed on to `msrt train`: {HANDED_ON}.",
        allow_abbrev=False,
    )
    parser.add_argument("--mode", type=int, choices=(0, 1), required=True, help="1: PyNative mode; 0: Graph mode")
    parser.add_argument("--config", required=True, metavar="FILE", help="the pynative.yaml")
    arguments, further = parser.parse_known_args()
    if arguments.mode == 0:
        sys.exit(
            f"--mode 0 is Graph mode, which is not run here. Convert the file and train the result with --mode 1: "
            f"msmigrate convert {arguments.config} -o pynative.yaml"
        )
    sys.argv = ["msrt", "train", arguments.config, *further]
    msrt()


if __name__ == "__main__":
    main()
