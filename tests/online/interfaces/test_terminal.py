"""What a command prints for people: coloured by us, never commanded by what a memory says."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from nous_online.interfaces.cli import output
from nous_online.interfaces.cli.output import inert_console, without_controls

HOSTILE = "Deploy \x1b]0;pwned\x07 \x1b[2J\x9b31m\x9dx\x08\x7f\rdone"
HARMLESS = "Deploy ]0;pwned [2J31mxdone"


def printed(renderable, **options):
    """Return what reaches a terminal in colours."""
    stream = io.StringIO()
    inert_console()(file=stream, force_terminal=True, color_system="standard", width=80, highlight=False).print(
        renderable, **options
    )
    return stream.getvalue()


def table(text):
    """Return a table of one cell."""
    made = Table(show_header=False, box=None)
    made.add_row(Text(text))
    return made


@pytest.mark.parametrize("put", [str, Text, table])
def test_control_characters_of_a_text_reach_no_terminal(put):
    shown = printed(put(HOSTILE.replace("[", "\\[") if put is str else HOSTILE))

    assert shown.replace("\\", "").strip() == HARMLESS


def test_our_own_colours_and_lines_stay():
    assert printed("[red]no[/red]\n\tnext") == "\x1b[31mno\x1b[0m\n        next\n"


def test_line_feeds_and_tabs_are_no_commands():
    assert without_controls("a\tb\nc\x00d") == "a\tb\ncd"


@pytest.mark.parametrize("say", [output.show, output.show_note, output.show_error])
def test_all_that_commands_say_goes_through_it(say, capsys):
    say(HOSTILE.replace("[", "("))

    streams = capsys.readouterr()
    told = streams.out + streams.err
    assert "Deploy ]0;pwned (2J31mx" in told
    assert set("\x1b\x07\x9b\x9d\x08\x7f\r").isdisjoint(told)
