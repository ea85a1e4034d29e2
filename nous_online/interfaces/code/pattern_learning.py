"""Learning the patterns of source files: read, mined together, and stored as procedures once each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nous_online.core.domain import Procedure
from nous_online.core.errors import InvalidInput, Refused
from nous_online.heart import Heart
from nous_online.interfaces.code.languages import language_of
from nous_online.interfaces.code.patterns import NewPattern, patterns_in
from nous_online.interfaces.code.shapes import shape_of
from nous_online.interfaces.code.skipping import FOREIGN, LARGEST

MOST_FILES = 5_000
"""Files read at once; about 20 ms each."""
REPOSITORIES = (".git", ".hg")
MANIFESTS = ("pyproject.toml", "setup.py", "package.json", "go.mod")


@dataclass(frozen=True)
class LearnedPatterns:
    """What reading some source led to; `skipped` says of each file that was passed over why."""

    patterns: tuple[NewPattern, ...]
    procedures: tuple[Procedure, ...]
    refused: Mapping[str, str]
    """Patterns that could not be stored, by their names, and why."""
    files_read: int
    skipped: Mapping[str, str]


def learn_patterns(
    heart: Heart, paths: Iterable[Path | str], *, project_id: str | None = None, is_recorded: bool = True
) -> LearnedPatterns:
    """Store the code patterns of files and of the files under folders, and return them.

    A pattern seen again is the same procedure: where it was seen is brought up to date, nothing is stored twice. It is
    named after the module it was seen in, from the root of the project, and after the project where one is told. With
    `is_recorded=False` nothing is written. Raises `InvalidInput` for a path that is not there or more than 5,000
    files, and `Unsupported` where the extra `code` is not installed.
    """
    files = [shape_of(shown, read) for shown, read in sources(paths)]
    found = patterns_in([each for each in files if each.skipped is None])
    patterns = [in_project(each, project_id) for each in found]
    stored: list[Procedure] = []
    refused: dict[str, str] = {}
    for each in patterns if is_recorded else ():
        try:
            stored.append(store_pattern(heart, each, project_id=project_id))
        except Refused as error:
            refused[each.name] = str(error)
    skipped = {each.path: each.skipped for each in files if each.skipped is not None}
    return LearnedPatterns(tuple(patterns), tuple(stored), refused, len(files) - len(skipped), skipped)


def in_project(new: NewPattern, project_id: str | None) -> NewPattern:
    """Return a pattern under a name that no other project's has: "endpoint in src/api (shop, python)"."""
    if project_id is None:
        return new
    language = f"{new.language})"
    return replace(new, name=f"{new.name.removesuffix(language)}{project_id}, {language}")


def store_pattern(heart: Heart, new: NewPattern, *, project_id: str | None) -> Procedure:
    """Store one pattern under its name, with where it was seen."""
    return heart.store_procedure(
        new.name,
        kind="pattern",
        domain=new.language,
        template=new.template,
        trigger=new.trigger,
        hint=new.hint,
        implementation_notes=[f"seen {new.count} times, such as {', '.join(new.examples)}"],
        tags=["code", new.language],
        source=f"source in {new.module or 'the project'}",
        source_kind="tool",
        trust=heart.agent.rights.trust_of("agent"),  # what Nous reads off syntax trees itself, no tool's word
        project_id=project_id,
    )


def sources(paths: Iterable[Path | str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of some paths, each once, with what they hold; their names start from the root of the project.

    They are the same wherever the paths are named from.
    """
    named = [Path(path) for path in paths]
    found = sorted({file for path in named for file in files_under(path)})
    if len(found) > MOST_FILES:
        raise InvalidInput(f"{len(found):,} files are more than {MOST_FILES:,} at once; name folders inside them")
    root = os.path.commonpath([root_of(path.resolve()) for path in named]) if named else ""
    for file in found:
        yield file.relative_to(root).as_posix(), beginning(file)


def root_of(path: Path) -> Path:
    """Return the folder of the repository a path lies in, otherwise of its project, otherwise the one that is named."""
    folder = path if path.is_dir() else path.parent
    for marks in (REPOSITORIES, MANIFESTS):
        for each in (folder, *folder.parents):
            if any((each / mark).exists() for mark in marks):
                return each
    return folder


def beginning(file: Path) -> bytes:
    """Return what a file holds, of a larger one than is ever read just enough to tell."""
    with file.open("rb") as stream:
        return stream.read(LARGEST + 1)


def files_under(path: Path) -> Sequence[Path]:
    """Return a file, or the files under a folder that are written in a known language; links are not followed."""
    if path.is_file():
        return [path.resolve()]
    if not path.is_dir():
        raise InvalidInput(f"{path} is neither a file nor a folder; name source files, or folders that hold some")
    found: list[Path] = []
    for folder, folders, names in os.walk(path.resolve()):
        folders[:] = sorted(name for name in folders if name not in FOREIGN and not name.startswith("."))
        files = (Path(folder, name) for name in sorted(names) if language_of(name))
        found.extend(file for file in files if not file.is_symlink())
    return found
