"""The form of a transcript, and what of it people said: no tool calls, no terminal output, no logs, no code.

Linear in the text. What is left is verbatim; of a terminal it is the comments, and the messages given to commands.
"""
# ruff: noqa: RUF001 — prompts and quotation marks are what is looked for

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from nous_online.language.pairs.lexicon import FUNCTION_WORDS
from nous_online.language.writing.sentences import head_of, speakers_in

FROM_TERMINAL = 0.25
"""Share of lines with a prompt from which a text is a terminal, whose other lines are output."""
LEAST_PROMPTS = 2
TALKING = frozenset({"user", "assistant", "human"})
"""Who opens lines of a talk, however many commands stand in it."""
LEAST_LETTERS = 0.72
"""Letters, spaces and the marks of prose in a line that was said; output, paths and code have fewer."""

KNOWN = FUNCTION_WORDS | frozenset(
    """der die das und ist nicht ich wir sie ein eine mit von zu den dem auf für es auch noch im le la les et est
    pas je nous vous un une des du que qui dans pour sur au il elle ce el los las y es no yo una con por para en se lo
    su del al está to i'm it's don't hi yeah""".split()  # noqa: SIM905 — words read best so
)
"""Words that half of what is said in English, German, French and Spanish consists of."""
LEAST_KNOWN = 0.2
"""Their share of the words of a text in one of those languages; 0.35 and more where sentences are whole."""

_PROMPT = re.compile(r"\A\s{0,4}(?:\([\w.-]{1,40}\)\s)?(?:[\w.-]{1,40}@[\w.-]{1,60}[^$#%❯]{0,120}?[$#%❯]|[$❯])\s(?=\S)")
_COMMENT = re.compile(r"#\s+(?=\S)")
_MESSAGE = re.compile(
    r"""\s(?:-[a-z]{0,3}m|-t|-b|--message|--title|--body|--reason)[= ](?:"([^"]{8,400})"|'([^']{8,400})')"""
    r"""|\bgit commit \(([^()]{8,200})\)"""
)
_PUBLISHES = re.compile(r"\b(?:commit|pr create|issue create|mr create|tag|release)\b")
_TOOL = re.compile(
    r"\A(?:(?:user|assistant|tool|system)\s?:\s)?\[(?!\d|[ xX]\]|session|date)"
    r"(?:[a-z_][\w .-]{0,30}\](?=\s)|[A-Za-z_][\w. -]{0,40}:\s|[A-Z][A-Za-z_]{2,30}\](?=\s))"
)
_BLOCK = re.compile(r"\A(?:(?:user|assistant|tool|system)\s?:\s)?<(?P<name>[a-z]{2,30}(?:-[a-z]{1,30}){1,4})>")
_OUTPUT = re.compile(
    r"\A(?:[-+]{3}\s|@@\s|[+-]\s{2,}\S|\d+\s*[|│┃:]\s|[│┃┌└├▪✓✗✔✘⎿●■]|\$\s|>>>\s|at\s\S{1,200}[(:]\S"
    r"|(?:FAILED|PASSED|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|Traceback)\b[\s:(\[]|File \""
    r"|[\w./\\-]{1,120}\.\w{1,6}:\d+|(?:Running|Compiling|Finished|Downloading|Installing|Collecting)\s\S{1,60}\s(?:with|in|v?\d)"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,12}\s+\[?(?:INFO|WARN|ERROR|DEBUG)"
    r"|\d+\s(?:passed|failed|tests?),?\s\d|\.{5,})"
)
_TALLY = re.compile(r"\b\d+\s(?:passed|failed|failures?|warnings?|skipped)\b")
_WHOLE = re.compile(r"\A[^\W\d_][\w'’,]*(?:\s[\w'’,.:/§%€$-]{1,40}){3,60}[.!?]\Z")
"""A line of prose from its first word to its full stop."""
_WORD = re.compile(r"[^\W\d_]+")
_SPEAKER = re.compile(r"\A[^:\[\]{}<>=/\\]{1,60}:\s")
_CODE = re.compile(r"[{}<>=;|\\`$@^~_/\[\]*#]|--|::|\(\)|->")


def said_in(detail: str) -> str:
    """Return the lines of a transcript that people said or wrote; all of it where nothing else is there."""
    lines = detail.splitlines()
    prompts = sum(bool(_PROMPT.match(line)) for line in lines)
    is_terminal = prompts >= LEAST_PROMPTS and prompts >= FROM_TERMINAL * sum(bool(line.strip()) for line in lines)
    is_talk = is_terminal and any((head_of(line) or "").casefold() in TALKING for line in lines)
    said = list(of_terminal(lines) if is_terminal and not is_talk else of_talk(lines))
    return "\n".join(said) if any(line.strip() for line in said) else detail


def of_terminal(lines: Sequence[str]) -> Iterator[str]:
    """Yield the comments of a terminal, and the messages its commands were given, a line each; output is left out.

    The output of a command that tells the date stays, for what was said after it.
    """
    was_date = False
    for line in lines:
        if not (prompt := _PROMPT.match(line)):
            if was_date:
                yield f"# {line}"
            continue
        command = line[prompt.end() :]
        was_date = command.strip() == "date"
        if comment := _COMMENT.match(command):
            yield f"- {command[comment.end() :]}"
        else:
            yield from messages_in(command)


def messages_in(command: str) -> Iterator[str]:
    """Yield the messages of a commit, the titles of a pull request or an issue that a command line states."""
    if _PUBLISHES.search(command):
        yield from (f"- {match[1] or match[2] or match[3]}" for match in _MESSAGE.finditer(command))


def of_talk(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a talk, a log or notes that are no machine's; an empty line where one was left out.

    What follows a command is its output, up to an empty line, a line that somebody says, or a whole sentence.
    """
    closing = ""
    is_output = is_printed = False
    speakers = speakers_in(lines)
    for line in lines:
        is_printed = bool(_PROMPT.match(line)) or (is_printed and not (is_said(line, speakers) or not line.strip()))
        if closing:
            closing = "" if closing in line else closing
            continue
        if (block := _BLOCK.match(line)) and (tag := f"</{block['name']}>") not in line:
            closing = tag
        is_tool = bool(_TOOL.match(line))
        is_output = is_tool or (is_output and line.startswith(("  ", "\t")))
        yield "" if block or is_output or is_printed or is_machine(line) else line
        if is_tool:
            yield from messages_in(line)


def is_said(line: str, speakers: Set[str]) -> bool:
    """Tell whether a line opens with who says it, or is a whole sentence, which no command prints."""
    return head_of(line) in speakers or bool(_WHOLE.match(line.strip()))


def is_machine(line: str) -> bool:
    """Tell whether a line is the output of a program, or code, rather than language."""
    plain = line.strip()
    if not plain or plain.startswith(("#", "```", "~~~", "[")):
        return False
    if _OUTPUT.match(plain):
        return True
    rest = plain[match.end() :] if (match := _SPEAKER.match(plain)) else plain
    letters = sum(char.isalpha() or char in " ,.'’?!-" for char in rest)
    marks = len(_CODE.findall(rest))
    return bool(rest) and marks > 1 and letters < LEAST_LETTERS * len(rest) and marks * 12 > len(rest)


def is_known_language(text: str) -> bool:
    """Tell whether a text is in a language whose words are known here: English, German, French or Spanish."""
    words = _WORD.findall(text.casefold())
    return sum(word in KNOWN for word in words) >= LEAST_KNOWN * len(words)
