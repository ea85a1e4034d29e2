"""`python -m nous_online.interfaces.cli`: the command line where its script is not on the path."""

from nous_online.interfaces.cli import main

main()
