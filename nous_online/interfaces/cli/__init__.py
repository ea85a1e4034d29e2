"""The command line: `nous`."""

from nous_online.interfaces.cli.command_line import application, main

__all__ = ["application", "main"]
