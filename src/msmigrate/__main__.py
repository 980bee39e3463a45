"""`python -m msmigrate`."""

from msmigrate.cli import main

main()
