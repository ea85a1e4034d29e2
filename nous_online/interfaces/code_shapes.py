"""Shapes of source code: its functions with the names they call, catch, raise and return, and no literals but routes.

Trees are walked with a stack, not by recursion, so that deeply nested source can't exceed the recursion limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.language.writing.credentials import holds_credential

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


def folder_reason(path: str) -> str | None:
    """Return the reason to skip a path that lies in a folder of dependencies or generated files, else None."""
    for part in PurePosixPath(path.replace("\\", "/")).parts[:-1]:
        if part in FOREIGN:
            return f"{part} holds what others wrote or tools made"
    return None


def skip_reason(path: str, source: bytes) -> str | None:
    """Return the reason to skip a file, else None."""
    if language_of(path) is None:
        return f"no known language ends so; known: {' '.join(SUFFIXES)}"
    return folder_reason(path) or content_reason(path, source)


def content_reason(path: str, source: bytes) -> str | None:
    """Return the reason to skip a file that was not written by hand, judged by its content, else None."""
    if len(source) > LARGEST:
        return f"{len(source):,} bytes are more than {LARGEST:,}"
    if b"\0" in source:
        return "it is binary"
    if _GENERATED_NAME.search(PurePosixPath(path).name) or _GENERATED_MARK.search(source[:2_000]):
        return "it was generated"
    if max(map(len, source.splitlines()), default=0) > LONGEST_LINE:
        return f"a line of it is longer than {LONGEST_LINE:,} characters"
    return None


FUNCTIONS = frozenset((
    "function_definition", "function_declaration", "method_definition", "method_declaration", "arrow_function",
    "function_expression", "func_literal",
))  # fmt: skip
CALLS = frozenset(("call", "call_expression", "new_expression"))
METHODS = frozenset(("get", "post", "put", "patch", "delete", "head", "options", "all", "route", "api_route",
                     "handlefunc", "handle", "websocket"))  # fmt: skip
TESTS = frozenset(("test", "it", "test.each", "it.each"))
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


@dataclass(frozen=True)
class SourceShape:
    """One file: its functions and imports, or the reason why it was skipped."""

    path: str
    language: Language | None
    imports: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()
    skipped: str | None = None


@dataclass
class _ShapeNames:
    """Names collected so far from one function."""

    names: dict[str, list[str]] = field(default_factory=lambda: {each: [] for each in _LISTS})
    has_assert: bool = False
    is_wrapping: bool = False


_LISTS = ("calls", "raises", "catches", "returns", "parameters", "types")


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
    return SourceShape(path, language, tuple(dict.fromkeys(import_names(root))), shapes_in(root))


def imports_of(path: str, source: str | bytes) -> list[str]:
    """Return the names a file imports, each once, in order; raise `InvalidInput` for a skipped file."""
    read = shape_of(path, source)
    if read.skipped is not None:
        raise InvalidInput(f"{path} can't be read for its imports: {read.skipped}")
    return list(read.imports)


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


def import_names(root: Node) -> Iterator[str]:
    """Yield the names a file imports."""
    for node in walk(root):
        if node.type == "import_statement" and node.child_by_field_name("source") is None:
            # Python; in JavaScript an import statement has a source, the string after `from`.
            yield from (dotted(child.child_by_field_name("name") or child) for child in node.named_children)
        elif node.type == "import_from_statement":
            yield dotted(node.child_by_field_name("module_name"))
        elif node.type in {"import_statement", "export_statement"}:
            yield from literals(node.child_by_field_name("source"))
        elif node.type == "import_spec":  # Go
            yield from literals(node.child_by_field_name("path"))
        elif node.type == "call_expression" and callee(node) in {"require", "import"}:
            yield from literals(first_argument(node))


def literals(node: Node | None) -> Iterator[str]:
    """Yield the text of a node that is a string literal, else nothing."""
    if node is not None and "string" in node.type:
        yield source_of(node)[1:-1]


def source_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


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
    """Return the name of the function that a call calls."""
    return dotted(node.child_by_field_name("function") or node.child_by_field_name("constructor"))


def first_argument(call: Node) -> Node | None:
    """Return the first argument of a call."""
    arguments = call.child_by_field_name("arguments")
    return arguments.named_children[0] if arguments is not None and arguments.named_children else None


def shapes_in(root: Node) -> tuple[Shape, ...]:
    """Return the functions, tests and endpoints of a file, sorted by line."""
    functions = [shape for node in walk(root) if node.type in FUNCTIONS if (shape := function_shape(node))]
    named = {shape.name: shape for shape in functions}
    routed = [shape for node in walk(root) if node.type in CALLS if (shape := call_shape(node, named))]
    return tuple(sorted([*functions, *routed], key=lambda shape: (shape.line, shape.name)))


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
    path = _ROUTE.match(next(literals(first_argument(node)), ""))
    if path is None or holds_credential(path["path"]):
        return None
    serves_any = method.lower() in {"route", "api_route", "handlefunc", "handle", "all"}
    return Route(path["method"] or ("ANY" if serves_any else method.upper()), path["path"])


def read_shape(name: str, node: Node) -> Shape:
    """Return the shape of one function, without that of functions nested in it."""
    found = _ShapeNames()
    for each in walk(node.child_by_field_name("body") or node, within=True):
        note(each, found)
    parameters = node.child_by_field_name("parameters")
    for each in parameters.named_children if parameters is not None else ():
        note_parameter(each, found)
    lists: dict[str, Any] = {key: tuple(dict.fromkeys(filter(None, values))) for key, values in found.names.items()}
    flags: dict[str, Any] = {"has_assert": found.has_assert, "is_wrapping": found.is_wrapping}
    return Shape(name, node.start_point[0] + 1, **(lists | flags))


def note_parameter(node: Node, found: _ShapeNames) -> None:
    """Collect the name and the declared type of a parameter."""
    kind = node.child_by_field_name("type")
    types = {"identifier", "type_identifier", "qualified_type"}
    if kind is not None:
        found.names["types"].extend(dotted(each) for each in walk(kind) if each.type in types)
    name = part_of(node, ("name", "pattern")) or (node.named_children[0] if node.named_children else node)
    found.names["parameters"].append(dotted(name))


def note(node: Node, found: _ShapeNames) -> None:
    """Collect the names that one node of a function's body uses."""
    if node.type in CALLS:
        found.names["calls"].append(callee(node))
    elif node.type in {"raise_statement", "throw_statement"} and node.named_children:
        thrown = node.named_children[0]
        found.names["raises"].append(callee(thrown) if thrown.type in CALLS else dotted(thrown))
        found.is_wrapping |= node.child_by_field_name("cause") is not None or b"cause" in (node.text or b"")
    elif node.type in {"except_clause", "catch_clause"}:
        found.names["catches"].append(caught_type(node))
    elif node.type == "if_statement" and is_go_error(node):
        found.names["catches"].append("err != nil")
    elif node.type == "return_statement":
        note_return(node, found)
    elif node.type == "assert_statement":
        found.has_assert = True


def caught_type(clause: Node) -> str:
    """Return the type that a clause catches, or "catch" in languages that name none."""
    if clause.type == "catch_clause":
        return "catch"
    first = clause.named_children[0] if clause.named_children else None
    for wrapping in ("as_pattern", "tuple"):
        first = first.named_children[0] if first is not None and first.type == wrapping else first
    return dotted(first) if first is not None and first.type != "block" else "Exception"


def is_go_error(node: Node) -> bool:
    """Return whether a condition is Go's check for an error."""
    condition = node.child_by_field_name("condition")
    return condition is not None and source_of(condition)[:40] == "err != nil"


def note_return(node: Node, found: _ShapeNames) -> None:
    """Collect a returned value: a call by its name, an object or a list by its type."""
    for value in node.named_children:
        for each in value.named_children if value.type == "expression_list" else [value]:
            if each.type in CALLS:
                found.names["returns"].append(callee(each))
                # Go returns errors instead of raising them.
                is_error = callee(each) in {"fmt.Errorf", "errors.New", "errors.Wrap", "errors.Wrapf"}
                if is_error:
                    found.names["raises"].append(callee(each))
                    found.is_wrapping |= b"%w" in (each.text or b"") or "Wrap" in callee(each)
            elif each.type in {"dictionary", "object", "list", "array"}:
                found.names["returns"].append(each.type)
