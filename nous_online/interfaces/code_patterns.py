"""Patterns in source code: how a project answers requests, writes tests and handles errors, and what it repeats.

A pattern needs three examples. It holds names and shapes, never literals, and names its places. Each is stored once, as
a procedure.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from nous_online.core.domain import Procedure
from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.policy import WorkflowPolicy
from nous_online.heart import Heart
from nous_online.interfaces.code_shapes import FOREIGN, LARGEST, Shape, SourceShape, language_of, module_of, shape_of
from nous_online.memories.levels import ARROW
from nous_online.memories.workflows import frequent_runs

LEAST_EXAMPLES = 3
MOST_EXAMPLES_NAMED = 5
MOST_SHAPES = 5
"""Repeated sequences of calls kept per language, the commonest."""
MOST_NAMES = 3
MOST, SOME = 1 / 3, 1 / 10
"""Share of the examples that must use a name for it to be in a template; SOME for errors, which are of many kinds."""
REPEATED = WorkflowPolicy(least_sessions=LEAST_EXAMPLES, least_steps=3, most_steps=8)
_VALIDATES = re.compile(
    r"valid|schema|safe_?parse|sanitiz|should_?bind|bind_?json|^checked_|^check_|decode$", re.IGNORECASE
)
_ANSWERS = re.compile(
    r"(?:^|\.)(?:json|send|render|jsonify|encode|write|html|text|redirect|\w*Response)$", re.IGNORECASE
)
_ASSERTS = re.compile(r"assert|expect|raises|^t\.(Error|Fatal)")
_PLAIN_TYPES = frozenset(
    """int str float bool bytes dict list tuple set None Any Optional Request Response NextFunction Context any string
    number boolean http ResponseWriter http.ResponseWriter http.Request""".split()  # noqa: SIM905
)
COMMON_CALLS = frozenset(
    """len str int float bool print range enumerate zip map filter sorted list dict set tuple isinstance getattr setattr
    super min max sum any all open repr iter next type append extend add get items keys values join split strip
    format replace update pop push forEach log console make new panic String Number Array Object Error errors
    Sprintf Printf Println Errorf lower upper startswith endswith encode decode dict.fromkeys partition""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class NewPattern:
    """A pattern found in source, ready to be stored; `examples` are places such as "api/users.py:12"."""

    name: str
    trigger: str
    template: dict[str, str]
    hint: str
    language: str
    module: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class ShapePlace:
    """A shape and its file."""

    path: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.path}:{self.shape.line}"


def patterns_in(files: Sequence[SourceShape]) -> list[NewPattern]:
    """Return the patterns of a project's files, by language; the order of files does not matter."""
    found: list[NewPattern] = []
    by_language: defaultdict[str, list[ShapePlace]] = defaultdict(list)
    for each in sorted(files, key=lambda file: file.path):
        family = "typescript" if each.language == "tsx" else str(each.language)
        by_language[family].extend(ShapePlace(each.path, shape) for shape in each.shapes)
    for language, places in sorted(by_language.items()):
        for make in (endpoint_pattern, testing_pattern, error_pattern):
            found.extend(filter(None, [make(language, places)]))
        found.extend(repeated_patterns(language, places))
    return found


def endpoint_pattern(language: str, places: Sequence[ShapePlace]) -> NewPattern | None:
    """Return the pattern of endpoints: the route, validation, error handling and response that most of them share."""
    endpoints = [place for place in places if place.shape.route]
    parts = {
        "route": route_template([place.shape for place in endpoints]),
        "validation": commonest(endpoints, validation),
        "error_handling": commonest(endpoints, lambda shape: [*shape.raises, *shape.catches]),
        "response": commonest(endpoints, answers),
    }
    shown = ["route", parts["validation"], parts["error_handling"], parts["response"]]
    return pattern("endpoint", language, endpoints, parts, shown, trigger="a new endpoint")


def route_template(endpoints: Sequence[Shape]) -> str:
    """Return the common prefix of all routes with placeholders: "{method} /api/{resource}"."""
    parts = [[part for part in shape.route.path.split("/") if part] for shape in endpoints if shape.route]
    shared: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1 or level[0][0] in "{:<[*":
            break
        shared.append(level[0])
    return "/".join(["{method} ", *shared, "{resource}"])


def validation(shape: Shape) -> list[str]:
    """Return the calls that validate a function's input, judged by name, else the types of its parameters."""
    calls = [call for call in shape.calls if _VALIDATES.search(call.rpartition(".")[2]) or _VALIDATES.search(call)]
    typed = [each for each in shape.types if each not in _PLAIN_TYPES and each[:1].isupper()]
    return calls or typed


def answers(shape: Shape) -> list[str]:
    """Return the calls that write a response, judged by name, else what the function returns."""
    return [call for call in shape.calls if _ANSWERS.search(call)] or list(shape.returns)


def testing_pattern(language: str, places: Sequence[ShapePlace]) -> NewPattern | None:
    """Return the pattern of tests: their naming, fixtures and assertions."""
    tests = [place for place in places if place.shape.is_test]
    parts = {
        "naming": {"python": "test_{what}", "go": "Test{What}"}.get(language, "{what}, in words"),
        "fixtures": commonest(tests, lambda shape: shape.parameters),
        "assertion": commonest(tests, assertions),
    }
    return pattern("test", language, tests, parts, [parts["fixtures"], "act", parts["assertion"]], trigger="a new test")


def assertions(shape: Shape) -> list[str]:
    """Return the assertions of a test, judged by name."""
    calls = [call for call in shape.calls if _ASSERTS.search(call)]
    return [*(["assert"] if shape.has_assert else []), *calls]


def error_pattern(language: str, places: Sequence[ShapePlace]) -> NewPattern | None:
    """Return the pattern of error handling outside of tests: types caught and raised, and whether causes are kept."""
    raising = [place for place in places if (place.shape.raises or place.shape.catches) and not place.shape.is_test]
    raised = commonest(raising, lambda shape: shape.raises, share=SOME)
    wrapping = sum(place.shape.is_wrapping for place in raising)
    parts = {
        "catch": commonest(raising, lambda shape: shape.catches, share=SOME),
        "raise": raised,
        "cause": "kept" if raised and 2 * wrapping >= sum(bool(place.shape.raises) for place in raising) else "",
    }
    shown = [parts["catch"], raised, "with its cause" if parts["cause"] else ""]
    return pattern("errors", language, raising, parts, shown, trigger="an error to handle")


def repeated_patterns(language: str, places: Sequence[ShapePlace]) -> list[NewPattern]:
    """Return the five commonest sequences of calls that at least three functions share."""
    by_place = {str(place): place for place in places if not place.shape.is_test}
    runs = {key: distinctive_calls(place.shape.calls) for key, place in by_place.items()}
    found: list[NewPattern] = []
    for run, holders in list(frequent_runs(runs, REPEATED).items())[:MOST_SHAPES]:
        calls = ARROW.join(run)
        held = [by_place[key] for key in holders]
        made = pattern("function", language, held, {"calls": calls}, run, trigger="a function like these")
        found.extend([replace(made, name=f"{calls} in {place_name(made.module)} ({language})")] if made else [])
    return found


def distinctive_calls(calls: Iterable[str]) -> tuple[str, ...]:
    """Return the unqualified names of calls, without those that any program makes."""
    last = (call.rpartition(".")[2] for call in calls)
    return tuple(name for name in last if name not in COMMON_CALLS and len(name) > 1)


def pattern(
    what: str, language: str, places: Sequence[ShapePlace], parts: dict[str, str], shown: Sequence[str], *, trigger: str
) -> NewPattern | None:
    """Return a pattern, None with fewer than three examples or an empty template."""
    template = {part: value for part, value in parts.items() if value}
    steps = [each.partition(", ")[0] for each in shown if each]
    examples = sorted({str(place) for place in places})
    if len(examples) < LEAST_EXAMPLES or not template or not steps:
        return None
    module = shared_module([place.path for place in places])
    return NewPattern(
        name=f"{what} in {place_name(module)} ({language})",
        trigger=trigger,
        template=template,
        hint=f"{what}: {ARROW.join(steps)}",
        language=language,
        module=module,
        count=len(examples),
        examples=tuple(examples[:MOST_EXAMPLES_NAMED]),
    )


def place_name(module: str) -> str:
    """Return the name of a module within the name of a pattern."""
    return module or "the project"


def commonest(places: Sequence[ShapePlace], of: Callable[[Shape], Iterable[str]], *, share: float = MOST) -> str:
    """Return the names that at least `share` of the shapes use, the commonest first; "" if none."""
    counts = Counter(name for place in places for name in dict.fromkeys(of(place.shape)) if name)
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join([name for name, count in ranked if count >= share * len(places)][:MOST_NAMES])


def shared_module(paths: Sequence[str]) -> str:
    """Return the deepest module that contains all files."""
    parts = [PurePosixPath(module_of(path)).parts for path in dict.fromkeys(paths)]
    shared: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return "/".join(shared)


MOST_FILES = 5_000
"""Files of one call; each takes about 20 ms."""
REPOSITORIES = (".git", ".hg")
MANIFESTS = ("pyproject.toml", "setup.py", "package.json", "go.mod")


@dataclass(frozen=True)
class LearnedPatterns:
    """The result of reading source; `skipped` has the reason for each skipped file."""

    patterns: tuple[NewPattern, ...]
    procedures: tuple[Procedure, ...]
    refused: Mapping[str, str]
    """Reasons by the name of a pattern that could not be stored."""
    files_read: int
    skipped: Mapping[str, str]


def learn_patterns(
    heart: Heart, paths: Iterable[Path | str], *, project_id: str | None = None, is_recorded: bool = True
) -> LearnedPatterns:
    """Store the code patterns of files and of the files under folders, and return them.

    A pattern seen again updates its procedure. It is named after its module, relative to the root of the project, and
    after the project if one is given. With `is_recorded=False` nothing is written. Raises `InvalidInput` for a missing
    path or more than 5,000 files, and `Unsupported` where the extra `code` is not installed.
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
    """Return a pattern with the project in its name: "endpoint in src/api (shop, python)"."""
    if project_id is None:
        return new
    language = f"{new.language})"
    return replace(new, name=f"{new.name.removesuffix(language)}{project_id}, {language}")


def store_pattern(heart: Heart, new: NewPattern, *, project_id: str | None) -> Procedure:
    """Store one pattern as a procedure of its name, with the places of its examples."""
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
        trust=heart.agent.rights.trust_of("agent"),  # read from syntax trees by Nous itself, not reported by a tool
        project_id=project_id,
    )


def sources(paths: Iterable[Path | str]) -> Iterator[tuple[str, bytes]]:
    """Yield each file of some paths once, as its path and content.

    Paths are relative to the root of the project, so that they don't depend on the current folder.
    """
    named = [Path(path) for path in paths]
    found = sorted({file for path in named for file in files_under(path)})
    if len(found) > MOST_FILES:
        raise InvalidInput(f"{len(found):,} files are more than {MOST_FILES:,} at once; name folders inside them")
    root = os.path.commonpath([root_of(path.resolve()) for path in named]) if named else ""
    for file in found:
        yield file.relative_to(root).as_posix(), read_source(file)


def root_of(path: Path) -> Path:
    """Return the root of a path's repository, else of its project (a folder with a manifest), else its own folder."""
    folder = path if path.is_dir() else path.parent
    for markers in (REPOSITORIES, MANIFESTS):
        for each in (folder, *folder.parents):
            if any((each / marker).exists() for marker in markers):
                return each
    return folder


def read_source(file: Path) -> bytes:
    """Return the content of a file, of one larger than `LARGEST` one byte more than that, by which it is skipped."""
    with file.open("rb") as stream:
        return stream.read(LARGEST + 1)


def files_under(path: Path) -> Sequence[Path]:
    """Return a file, or the files of known languages under a folder; symbolic links are not followed."""
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
