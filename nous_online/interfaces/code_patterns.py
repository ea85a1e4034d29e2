"""Patterns in source code: how a project answers requests, writes tests and handles errors, and what it repeats.

A file is read as the shapes of its functions: the names they call, catch, raise and return, and no literals but routes.
Trees are walked with a stack, not by recursion, so that deeply nested source can't exceed the recursion limit. A
pattern needs three examples. It holds names and shapes, and names its places. Each is stored once, as a procedure.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from nous_online.core.domain import Procedure
from nous_online.core.errors import InvalidInput, Refused, Unsupported
from nous_online.core.policy import WorkflowPolicy
from nous_online.heart import Heart
from nous_online.language.writing.credentials import holds_credential
from nous_online.memories.levels import ARROW
from nous_online.memories.workflows import frequent_runs

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


Language = Literal["python", "typescript", "tsx", "javascript", "go"]
SUFFIXES: dict[str, Language] = {
    ".py": "python", ".pyi": "python", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".go": "go",
}  # fmt: skip


def language_of(path: str) -> Language | None:
    """Return the language of a file by its suffix, None for an unknown one."""
    return SUFFIXES.get(PurePosixPath(path.replace("\\", "/")).suffix.lower())


@cache
def parser_of(language: Language) -> Parser:
    """Return the parser of a language; raise `Unsupported` where the extra `code` is not installed."""
    try:
        import tree_sitter
        import tree_sitter_go
        import tree_sitter_javascript
        import tree_sitter_python
        import tree_sitter_typescript
    except ModuleNotFoundError as error:
        absent = f"reading source needs the extra `code` ({error.name} is not installed)"
        raise Unsupported(f"{absent}; run: pip install 'nous-pipelines[code]'") from error
    grammars = {
        "python": tree_sitter_python.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
        "javascript": tree_sitter_javascript.language,
        "go": tree_sitter_go.language,
    }
    return tree_sitter.Parser(tree_sitter.Language(grammars[language]()))


def module_of(path: str) -> str:
    """Return the module of a file: its directory, with "/" as separator; "" for a file at the root."""
    parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in {"/", ".", ".."}]
    return "/".join(parts[:-1])


LARGEST = 512 * 1024
"""Bytes; larger files are rarely written by hand."""
LONGEST_LINE = 2_000
"""Characters; minified and generated source has longer ones."""
FOREIGN = frozenset(
    """node_modules vendor vendored third_party site-packages dist build out target .venv venv .git .tox __pycache__
    .next .nuxt coverage generated gen .mypy_cache .pytest_cache bower_components""".split()  # noqa: SIM905
)
_GENERATED_NAME = re.compile(r"(?:\.min\.|[._]pb2?[._]|[._]pb\.go$|_generated\.|\.generated\.|\.d\.ts$|bundle\.js$)")
_GENERATED_MARK = re.compile(
    rb"^[^\S\n]*+(?:#|//|/?\*)[^\n]{0,80}"
    rb"(?:@generated|code generated [^\n]{0,60}do not edit|auto-?generated (?:file|by|code))",
    re.IGNORECASE | re.MULTILINE,
)


def skip_reason(path: str, source: bytes) -> str | None:
    """Return the reason to skip a file that is in no known language or was not written by hand, else None."""
    foreign = next((part for part in PurePosixPath(path.replace("\\", "/")).parts[:-1] if part in FOREIGN), None)
    longest = max(map(len, source[: LARGEST + 1].splitlines()), default=0)
    is_generated = _GENERATED_NAME.search(PurePosixPath(path).name) or _GENERATED_MARK.search(source[:2_000])
    reasons = (
        (language_of(path) is None, f"no known language ends so; known: {' '.join(SUFFIXES)}"),
        (foreign, f"{foreign} holds what others wrote or tools made"),
        (len(source) > LARGEST, f"{len(source):,} bytes are more than {LARGEST:,}"),
        (b"\0" in source, "it is binary"),
        (is_generated, "it was generated"),
        (longest > LONGEST_LINE, f"a line of it is longer than {LONGEST_LINE:,} characters"),
    )
    return next((reason for is_so, reason in reasons if is_so), None)


FUNCTIONS = frozenset((
    "function_definition", "function_declaration", "method_definition", "method_declaration", "arrow_function",
    "function_expression", "func_literal",
))  # fmt: skip
CALLS = frozenset(("call", "call_expression", "new_expression"))
METHODS = frozenset(("get", "post", "put", "patch", "delete", "head", "options", "all", "route", "api_route",
                     "handlefunc", "handle", "websocket"))  # fmt: skip
TESTS = frozenset(("test", "it", "test.each", "it.each"))
TYPE_NAMES = frozenset(("identifier", "type_identifier", "qualified_type"))
BROKEN_SHARE = 0.1
"""Share of a file's bytes that may be syntax errors; a file with more is skipped."""
LONGEST_NAME = 60
MOST_NODES = 200_000
_TEST_NAME = re.compile(r"test_|Test[A-Z_]")
_ROUTE = re.compile(r"^(?:(?P<method>[A-Z]{3,7}) )?(?P<path>/[\w\-./{}:<>*$\[\]]{0,120})$")


@dataclass(frozen=True)
class Route:
    """The route of an endpoint: its method in upper case, and its path."""

    method: str
    path: str


@dataclass(frozen=True)
class Shape:
    """One function, test or endpoint: the names it uses, in source order."""

    name: str
    line: int
    path: str = ""
    calls: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    catches: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Declared types of its parameters."""
    has_assert: bool = False
    is_wrapping: bool = False
    """Whether an error it raises keeps its cause."""
    is_test: bool = False
    route: Route | None = None

    @property
    def place(self) -> str:
        """Where it is, such as "api/users.py:12"."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class SourceShape:
    """One file: its functions, or the reason why it was skipped."""

    path: str
    language: Language | None
    shapes: tuple[Shape, ...] = ()
    skipped: str | None = None


ShapeNames = defaultdict[str, list[str]]
"""The names collected from one function, by the attribute of its shape."""


def shape_of(path: str, source: str | bytes) -> SourceShape:
    """Return the shape of one file; `skipped` has the reason if it was not read.

    Raises `Unsupported` where the extra `code` is not installed.
    """
    text = source.encode() if isinstance(source, str) else source
    language = language_of(path)
    reason = skip_reason(path, text)
    if reason is not None or language is None:
        return SourceShape(path, language, skipped=reason)
    root = parser_of(language).parse(text).root_node
    reason = broken(root, len(text))
    if reason is not None:
        return SourceShape(path, language, skipped=reason)
    functions = [shape for node in walk(root) if node.type in FUNCTIONS if (shape := function_shape(node))]
    named = {shape.name: shape for shape in functions}
    routed = [shape for node in walk(root) if node.type in CALLS if (shape := call_shape(node, named))]
    shapes = sorted([*functions, *routed], key=lambda shape: (shape.line, shape.name))
    return SourceShape(path, language, tuple(replace(each, path=path) for each in shapes))


def broken(root: Node, size: int) -> str | None:
    """Return the reason to skip a tree with too many errors or nodes, else None."""
    broken_bytes = 0
    for nodes, node in enumerate(walk(root)):
        broken_bytes += node.end_byte - node.start_byte if node.is_error else 0
        if nodes > MOST_NODES:
            return f"its tree has more than {MOST_NODES:,} nodes"
    return f"its syntax is broken in {broken_bytes:,} of {size:,} bytes" if broken_bytes > BROKEN_SHARE * size else None


def walk(root: Node, *, within: bool = False) -> Iterator[Node]:
    """Yield the named nodes of a tree in source order; with `within`, without those inside nested functions."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if not (within and node.type in FUNCTIONS and node != root):
            stack.extend(reversed(node.named_children))


def source_of(node: Node | None) -> str:
    return "" if node is None else (node.text or b"").decode("utf-8", "replace")


def dotted(node: Node | None) -> str:
    """Return a qualified name such as "json.NewEncoder.Encode"; "" for a node that is not a name."""
    parts: list[str] = []
    while node is not None and len(parts) < 4:  # noqa: PLR2004 — longer chains say no more
        last = part_of(node, ("attribute", "property", "field"))
        # A dotted module and a qualified type are names that have children.
        is_compound = node.type in {"dotted_name", "relative_import", "qualified_type"}
        is_name = last is not None or not node.named_children or is_compound
        parts.append(source_of(last or node) if is_name else "")
        node = part_of(node, ("object", "operand", "function", "constructor"))
    name = ".".join(part for part in reversed(parts) if part)
    return name if len(name) <= LONGEST_NAME and "\n" not in name else ""


def part_of(node: Node, fields: Sequence[str]) -> Node | None:
    """Return the child of the first of these fields that a node has."""
    for name in fields:
        if (part := node.child_by_field_name(name)) is not None:
            return part
    return None


def callee(node: Node) -> str:
    return dotted(node.child_by_field_name("function") or node.child_by_field_name("constructor"))


def function_shape(node: Node) -> Shape | None:
    """Return the shape of a function, None for one without a name."""
    name = node.child_by_field_name("name")
    if name is None:
        return None
    shape = read_shape(source_of(name)[:LONGEST_NAME], node)
    decorators = [child for child in node.parent.named_children if child.type == "decorator"] if node.parent else []
    routes = [route for each in decorators for call in each.named_children if (route := route_of(call))]
    is_test = bool(_TEST_NAME.match(shape.name)) and not shape.name.startswith("TestMain")
    return replace(shape, route=routes[0] if routes else None, is_test=is_test)


def call_shape(node: Node, named: dict[str, Shape]) -> Shape | None:
    """Return the endpoint or test that a call declares, with the shape of the function passed to it, else None."""
    name, route = callee(node), route_of(node)
    arguments = node.child_by_field_name("arguments")
    if arguments is None or not (route or name in TESTS):
        return None
    if node.parent is not None and node.parent.type == "decorator":  # `function_shape` reads those
        return None
    inner = [each for each in arguments.named_children if each.type in FUNCTIONS]
    if name in TESTS and inner:
        return replace(read_shape(name, inner[-1]), is_test=True)
    if route is None or len(arguments.named_children) == 1:  # `client.get("/path")` asks, and serves nothing
        return None
    if inner:
        own = read_shape(name, inner[-1])
        # Middleware, such as a validator, is called between route and handler.
        before = tuple(callee(each) for each in arguments.named_children if each.type in CALLS)
        return replace(own, name=name, calls=(*filter(None, before), *own.calls), route=route)
    handler = named.get(dotted(arguments.named_children[-1]).rpartition(".")[2])
    return replace(handler, name=name, line=node.start_point[0] + 1, route=route) if handler else None


def route_of(node: Node) -> Route | None:
    """Return the route of a call such as `app.get("/path")`, None for any other call."""
    receiver, _, method = callee(node).rpartition(".") if node.type in CALLS else ("", "", "")
    if not receiver or method.lower() not in METHODS:
        return None
    arguments = node.child_by_field_name("arguments")
    first = next(iter(arguments.named_children), None) if arguments is not None else None
    path = _ROUTE.match(source_of(first)[1:-1]) if first is not None and "string" in first.type else None
    if path is None or holds_credential(path["path"]):
        return None
    serves_any = method.lower() in {"route", "api_route", "handlefunc", "handle", "all"}
    return Route(path["method"] or ("ANY" if serves_any else method.upper()), path["path"])


def read_shape(name: str, node: Node) -> Shape:
    """Return the shape of one function, without that of functions nested in it."""
    found = ShapeNames(list)
    for each in walk(node.child_by_field_name("body") or node, within=True):
        note(each, found)
    parameters = node.child_by_field_name("parameters")
    for each in parameters.named_children if parameters is not None else ():
        if (kind := each.child_by_field_name("type")) is not None:
            found["types"] += [dotted(part) for part in walk(kind) if part.type in TYPE_NAMES]
        named = part_of(each, ("name", "pattern")) or (each.named_children[0] if each.named_children else each)
        found["parameters"].append(dotted(named))
    flags: dict[str, Any] = {"has_assert": bool(found.pop("asserts", ())), "is_wrapping": bool(found.pop("causes", ()))}
    lists: dict[str, Any] = {key: tuple(dict.fromkeys(filter(None, values))) for key, values in found.items()}
    return Shape(name, node.start_point[0] + 1, **(lists | flags))


def note(node: Node, found: ShapeNames) -> None:
    """Collect the names that one node of a function's body uses."""
    if node.type in CALLS:
        found["calls"].append(callee(node))
    elif node.type in {"raise_statement", "throw_statement"} and node.named_children:
        thrown = node.named_children[0]
        found["raises"].append(callee(thrown) if thrown.type in CALLS else dotted(thrown))
        if node.child_by_field_name("cause") is not None or b"cause" in (node.text or b""):
            found["causes"].append("cause")
    elif node.type in {"except_clause", "catch_clause"}:
        found["catches"].append(caught_type(node))
    elif node.type == "if_statement" and source_of(node.child_by_field_name("condition")) == "err != nil":
        found["catches"].append("err != nil")
    elif node.type == "return_statement":
        note_return(node, found)
    elif node.type == "assert_statement":
        found["asserts"].append("assert")


def caught_type(clause: Node) -> str:
    """Return the type that a clause catches, or "catch" in languages that name none."""
    if clause.type == "catch_clause":
        return "catch"
    first = clause.named_children[0] if clause.named_children else None
    for wrapping in ("as_pattern", "tuple"):
        first = first.named_children[0] if first is not None and first.type == wrapping else first
    return dotted(first) if first is not None and first.type != "block" else "Exception"


def note_return(node: Node, found: ShapeNames) -> None:
    """Collect a returned value: a call by its name, an object or a list by its type."""
    for value in node.named_children:
        for each in value.named_children if value.type == "expression_list" else [value]:
            if each.type in CALLS:
                found["returns"].append(callee(each))
                # Go returns errors instead of raising them.
                if callee(each) in {"fmt.Errorf", "errors.New", "errors.Wrap", "errors.Wrapf"}:
                    found["raises"].append(callee(each))
                    found["causes"] += ["cause"] if b"%w" in (each.text or b"") or "Wrap" in callee(each) else []
            elif each.type in {"dictionary", "object", "list", "array"}:
                found["returns"].append(each.type)


# --- patterns: what at least three shapes have in common ---

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


def patterns_in(files: Sequence[SourceShape], *, project_id: str | None = None) -> list[NewPattern]:
    """Return the patterns of a project's files, by language; the order of files does not matter.

    Each is named after its module, its language and the project: "endpoint in src/api (shop, python)".
    """
    found: list[NewPattern] = []
    by_language: defaultdict[str, list[Shape]] = defaultdict(list)
    for each in sorted(files, key=lambda file: file.path):
        by_language["typescript" if each.language == "tsx" else str(each.language)].extend(each.shapes)
    for language, shapes in sorted(by_language.items()):
        of_language = [make(language, shapes) for make in (endpoint_pattern, testing_pattern, error_pattern)]
        label = ", ".join(filter(None, (project_id, language)))
        for new in (*of_language, *repeated_patterns(language, shapes)):
            found += [replace(new, name=f"{new.name} in {new.module or 'the project'} ({label})")] if new else []
    return found


def endpoint_pattern(language: str, shapes: Sequence[Shape]) -> NewPattern | None:
    """Return the pattern of endpoints: the route, validation, error handling and response that most of them share."""
    endpoints = [shape for shape in shapes if shape.route]
    paths = [[part for part in shape.route.path.split("/") if part] for shape in endpoints if shape.route]
    fixed = takewhile(lambda part: part[0] not in "{:<[*", common_beginning(paths))
    parts = {
        "route": "/".join(["{method} ", *fixed, "{resource}"]),
        "validation": commonest(endpoints, validation),
        "error_handling": commonest(endpoints, lambda shape: [*shape.raises, *shape.catches]),
        "response": commonest(endpoints, lambda shape: [*filter(_ANSWERS.search, shape.calls)] or shape.returns),
    }
    shown = ["route", parts["validation"], parts["error_handling"], parts["response"]]
    return pattern("endpoint", language, endpoints, parts, shown, trigger="a new endpoint")


def validation(shape: Shape) -> list[str]:
    """Return the calls that validate a function's input, judged by name, else the types of its parameters."""
    calls = [call for call in shape.calls if _VALIDATES.search(call.rpartition(".")[2]) or _VALIDATES.search(call)]
    typed = [each for each in shape.types if each not in _PLAIN_TYPES and each[:1].isupper()]
    return calls or typed


def testing_pattern(language: str, shapes: Sequence[Shape]) -> NewPattern | None:
    tests = [shape for shape in shapes if shape.is_test]
    parts = {
        "naming": {"python": "test_{what}", "go": "Test{What}"}.get(language, "{what}, in words"),
        "fixtures": commonest(tests, lambda shape: shape.parameters),
        "assertion": commonest(
            tests, lambda shape: [*(["assert"] if shape.has_assert else []), *filter(_ASSERTS.search, shape.calls)]
        ),
    }
    return pattern("test", language, tests, parts, [parts["fixtures"], "act", parts["assertion"]], trigger="a new test")


def error_pattern(language: str, shapes: Sequence[Shape]) -> NewPattern | None:
    """Return the pattern of error handling outside of tests: types caught and raised, and whether causes are kept."""
    raising = [shape for shape in shapes if (shape.raises or shape.catches) and not shape.is_test]
    raised = commonest(raising, lambda shape: shape.raises, share=SOME)
    wrapping = sum(shape.is_wrapping for shape in raising)
    parts = {
        "catch": commonest(raising, lambda shape: shape.catches, share=SOME),
        "raise": raised,
        "cause": "kept" if raised and 2 * wrapping >= sum(bool(shape.raises) for shape in raising) else "",
    }
    shown = [parts["catch"], raised, "with its cause" if parts["cause"] else ""]
    return pattern("errors", language, raising, parts, shown, trigger="an error to handle")


def repeated_patterns(language: str, shapes: Sequence[Shape]) -> list[NewPattern]:
    """Return the five commonest sequences of calls that at least three functions share."""
    by_place = {shape.place: shape for shape in shapes if not shape.is_test}
    unqualified = {place: [call.rpartition(".")[2] for call in shape.calls] for place, shape in by_place.items()}
    runs = {
        place: tuple(name for name in names if name not in COMMON_CALLS and len(name) > 1)
        for place, names in unqualified.items()
    }
    found: list[NewPattern] = []
    for run, holders in list(frequent_runs(runs, REPEATED).items())[:MOST_SHAPES]:
        calls = ARROW.join(run)
        held = [by_place[place] for place in holders]
        made = pattern("function", language, held, {"calls": calls}, run, trigger="a function like these")
        found += [replace(made, name=calls)] if made else []
    return found


def pattern(
    what: str, language: str, shapes: Sequence[Shape], parts: dict[str, str], shown: Sequence[str], *, trigger: str
) -> NewPattern | None:
    """Return a pattern, None with fewer than three examples or an empty template."""
    template = {part: value for part, value in parts.items() if value}
    steps = [each.partition(", ")[0] for each in shown if each]
    examples = sorted({shape.place for shape in shapes})
    if len(examples) < LEAST_EXAMPLES or not template or not steps:
        return None
    folders = [PurePosixPath(module_of(path)).parts for path in dict.fromkeys(shape.path for shape in shapes)]
    return NewPattern(
        name=what,
        trigger=trigger,
        template=template,
        hint=f"{what}: {ARROW.join(steps)}",
        language=language,
        module="/".join(common_beginning(folders)),
        count=len(examples),
        examples=tuple(examples[:MOST_EXAMPLES_NAMED]),
    )


def commonest(shapes: Sequence[Shape], of: Callable[[Shape], Iterable[str]], *, share: float = MOST) -> str:
    """Return the names that at least `share` of the shapes use, the commonest first; "" if none."""
    counts = Counter(name for shape in shapes for name in dict.fromkeys(of(shape)) if name)
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join([name for name, count in ranked if count >= share * len(shapes)][:MOST_NAMES])


def common_beginning(parts: Sequence[Sequence[str]]) -> list[str]:
    return [level[0] for level in takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))]


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
    patterns = patterns_in([each for each in files if each.skipped is None], project_id=project_id)
    stored: list[Procedure] = []
    refused: dict[str, str] = {}
    for each in patterns if is_recorded else ():
        try:
            stored.append(store_pattern(heart, each, project_id=project_id))
        except Refused as error:
            refused[each.name] = str(error)
    skipped = {each.path: each.skipped for each in files if each.skipped is not None}
    return LearnedPatterns(tuple(patterns), tuple(stored), refused, len(files) - len(skipped), skipped)


def store_pattern(heart: Heart, new: NewPattern, *, project_id: str | None) -> Procedure:
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
        with file.open("rb") as stream:
            yield file.relative_to(root).as_posix(), stream.read(LARGEST + 1)  # a larger one is skipped by that byte


def root_of(path: Path) -> Path:
    """Return the root of a path's repository, else of its project (a folder with a manifest), else its own folder."""
    folder = path if path.is_dir() else path.parent
    for markers in (REPOSITORIES, MANIFESTS):
        for each in (folder, *folder.parents):
            if any((each / marker).exists() for marker in markers):
                return each
    return folder


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
