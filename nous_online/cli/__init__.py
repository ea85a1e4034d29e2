"""The command line: `nous`."""

from nous_online.cli.application import application, main

__all__ = ["application", "main"]
