"""`python -m nous_online.cli`: the command line where its script is not on the path."""

from nous_online.cli import main

main()
