"""`python -m msrt`: the same as the `msrt` command."""

from msrt.cli import main

main()
