from __future__ import annotations

import json
import sys

import pytest

from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.interfaces.code_patterns import (
    NewPattern,
    Route,
    learn_patterns,
    module_of,
    parser_of,
    patterns_in,
    shape_of,
)

PYTHON = """
from fastapi import APIRouter, HTTPException
import shop.orders as orders

@router.get("/api/users/{id}")
def show(id: int):
    try:
        user = users.load(id)
    except KeyError as error:
        raise HTTPException(404) from error
    return JSONResponse(user)

@router.post("/api/users")
def create(body: NewUser):
    if not body:
        raise HTTPException(422)
    return JSONResponse(users.store(body))

@router.delete("/api/orders/{id}")
async def drop(id: int):
    if not orders.remove(id):
        raise HTTPException(404)
    return JSONResponse({})
"""
TYPESCRIPT = """
import { Router } from "express";
import type { User } from "./user";
const zod = require("zod");

router.get("/api/users/:id", async (req, res, next) => {
  try { res.json(await users.load(UserId.parse(req.params.id))) } catch (error) { next(error) }
});
router.post("/api/users", async (req, res, next) => {
  try { res.json(await users.store(NewUser.parse(req.body))) } catch (error) { next(error) }
});
router.put("/api/users/:id", async (req, res, next) => {
  try { res.json(await users.change(User.parse(req.body))) } catch (error) { next(error) }
});
"""
GO = """
package shop

import (
    "encoding/json"
    "net/http"
)

func (s *Server) Show(w http.ResponseWriter, r *http.Request) {
    user, err := s.users.Load(r)
    if err != nil {
        http.Error(w, "no", 500)
        return
    }
    json.NewEncoder(w).Encode(user)
}

func Routes(r *Router) {
    r.GET("/api/users/:id", s.Show)
    r.GET("/api/people/:id", s.Show)
    http.HandleFunc("GET /api/me", Show)
}
"""


def patterns_of(path: str, source: str | bytes) -> list[NewPattern]:
    return patterns_in([shape_of(path, source)])


def test_python_endpoints_are_a_pattern_of_route_validation_errors_and_response():
    endpoint = patterns_of("shop/api.py", PYTHON)[0]

    assert endpoint.name == "endpoint in shop (python)"
    assert endpoint.template == {
        "route": "{method} /api/{resource}",
        "validation": "NewUser",
        "error_handling": "HTTPException, KeyError",
        "response": "JSONResponse",
    }
    assert endpoint.hint == "endpoint: route→NewUser→HTTPException→JSONResponse"
    assert endpoint.examples == ("shop/api.py:14", "shop/api.py:20", "shop/api.py:6")


def test_typescript_endpoints_are_found_where_routes_are_declared_by_calls():
    endpoint = patterns_of("src/users.ts", TYPESCRIPT)[0]

    assert endpoint.count == 3
    assert endpoint.template["route"] == "{method} /api/users/{resource}"
    assert endpoint.template["error_handling"] == "catch"
    assert endpoint.template["response"] == "res.json"


def test_go_handlers_are_followed_to_the_function_they_name():
    endpoint = patterns_of("shop/server.go", GO)[0]

    assert endpoint.template["error_handling"] == "err != nil"
    assert "json.NewEncoder.Encode" in endpoint.template["response"]
    assert {shape.route for shape in shape_of("shop/server.go", GO).shapes if shape.route} == {
        Route("GET", "/api/users/:id"), Route("GET", "/api/people/:id"), Route("GET", "/api/me"),
    }  # fmt: skip


def test_tests_are_a_pattern_of_fixtures_and_assertions():
    source = "\n".join(f"def test_{name}(heart):\n    heart.learn('x')\n    assert heart\n" for name in "abc")

    (found,) = patterns_of("tests/test_heart.py", source)

    assert found.hint == "test: heart→act→assert"
    assert found.template["naming"] == "test_{what}"


def test_how_errors_are_treated_is_a_pattern():
    source = "\n".join(
        f"def load_{name}():\n    try:\n        read()\n    except OSError as e:\n        raise NotThere('x') from e\n"
        for name in "abc"
    )

    (found,) = patterns_of("shop/files.py", source)

    assert found.template == {"catch": "OSError", "raise": "NotThere", "cause": "kept"}
    assert found.hint == "errors: OSError→NotThere→with its cause"


def test_calls_that_three_functions_make_in_one_order_are_a_pattern():
    source = "\n".join(f"def {name}():\n    checked(1)\n    print(2)\n    opened(3)\n    stored(4)\n" for name in "abc")

    (found,) = patterns_of("shop/store.py", source)

    assert found.hint == "function: checked→opened→stored"
    assert found.name == "checked→opened→stored in shop (python)"


def test_two_examples_are_no_pattern():
    source = "\n".join(f"def {name}():\n    checked(1)\n    opened(3)\n    stored(4)\n" for name in "ab")

    assert not patterns_of("shop/store.py", source)


def test_examples_may_lie_in_several_files_and_their_order_changes_nothing():
    files = [
        shape_of(f"shop/{name}.py", f"def {name}():\n    checked(1)\n    opened(3)\n    stored(4)\n") for name in "abc"
    ]

    (found,) = patterns_in(files)

    assert found.examples == ("shop/a.py:1", "shop/b.py:1", "shop/c.py:1")
    assert patterns_in(files[::-1]) == [found]


def test_the_module_of_a_file_is_its_folder():
    assert module_of("src/auth/login.ts") == "src/auth"
    assert module_of("src\\auth\\login.ts") == "src/auth"
    assert module_of("./login.ts") == ""


@pytest.mark.parametrize(
    ("path", "source", "reason"),
    [
        ("notes.txt", "hello", "no known language"),
        ("web/node_modules/x/index.js", "f()", "node_modules"),
        ("app.min.js", "f()", "generated"),
        ("api.py", "# Code generated by protoc. DO NOT EDIT.\n", "generated"),
        ("api.py", "def f(:::\n  ))) = 3 ]]\n" * 5, "broken"),
        ("api.py", b"x = 1\0", "binary"),
        ("api.py", b"x = 1\n" * 100_000, "more than"),
        ("api.py", f"x = '{'y' * 3000}'", "longer than"),
    ],
)
def test_what_is_not_the_projects_own_source_is_passed_over_with_the_reason(path, source, reason):
    assert reason in str(shape_of(path, source).skipped)
    assert not patterns_of(path, source)


def test_deep_nesting_is_read_without_recursion():
    source = f"x = {'f(' * 3000}1{')' * 3000}".replace("(", "(\n").replace(")", "\n)")

    assert shape_of("deep.py", source).skipped is None


def test_literals_stay_out_of_patterns():
    key = "sk-ant-api03-AbCdEf0123456789AbCdEf0123456789"
    source = "\n".join(
        f'@app.get("/hook/{key}/{name}")\ndef {name}():\n    checked("{key}")\n    opened(1)\n    stored(2)\n'
        for name in "abc"
    )

    found = patterns_of("hooks.py", source)

    assert [each.hint for each in found] == ["function: checked→opened→stored"]
    assert key not in json.dumps([vars(each) for each in found])


def test_a_missing_extra_is_named(monkeypatch):
    parser_of.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    with pytest.raises(Unsupported, match=r"nous-pipelines\[code\]"):
        shape_of("api.py", "x = 1")


def test_learned_patterns_are_procedures_with_their_provenance(heart, tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop" / "api.py").write_text(PYTHON, "utf-8")
    (tmp_path / "shop" / "notes.bin").write_bytes(b"\0")
    monkeypatch.chdir(tmp_path)

    learned = learn_patterns(heart, ["shop"])

    endpoint = next(each for each in learned.procedures if each.name == "endpoint in shop (python)")
    assert endpoint.kind == "pattern"
    assert endpoint.compressed == "endpoint: route→NewUser→HTTPException→JSONResponse"
    assert endpoint.implementation_notes == ["seen 3 times, such as shop/api.py:14, shop/api.py:20, shop/api.py:6"]
    assert (endpoint.source, endpoint.source_kind) == ("source in shop", "tool")


def test_the_same_source_again_stores_nothing_twice_and_changes_nothing(heart, tmp_path):
    (tmp_path / "api.py").write_text(PYTHON, "utf-8")
    first = learn_patterns(heart, [tmp_path])

    assert learn_patterns(heart, [tmp_path / "api.py", tmp_path]).procedures == first.procedures


def test_a_pattern_seen_more_often_is_one_procedure_that_says_so(heart, tmp_path):
    (tmp_path / "api.py").write_text(PYTHON, "utf-8")
    (first, *_) = learn_patterns(heart, [tmp_path]).procedures
    (tmp_path / "more.py").write_text(PYTHON, "utf-8")

    (second, *_) = learn_patterns(heart, [tmp_path]).procedures

    assert second.id == first.id
    assert second.implementation_notes[0].startswith("seen 6 times")


def test_a_name_that_another_kind_has_is_left_alone_and_told(heart, tmp_path, monkeypatch):
    (tmp_path / "api.py").write_text(PYTHON, "utf-8")
    monkeypatch.chdir(tmp_path)
    heart.store_procedure("endpoint in the project (python)", kind="workflow", steps=["ask Ada"])

    learned = learn_patterns(heart, ["."])

    assert "a workflow" in learned.refused["endpoint in the project (python)"]


def test_a_pattern_is_the_same_wherever_its_source_is_named_from(heart, tmp_path, monkeypatch):
    folder = tmp_path / "src" / "api"
    folder.mkdir(parents=True)
    (folder / "users.py").write_text(PYTHON, "utf-8")
    stored = []
    for here, named in (("/", folder.parent), (tmp_path, "src"), (folder.parent, "."), (folder, "..")):
        monkeypatch.chdir(here)
        stored.append(learn_patterns(heart, [named]).procedures)

    assert stored == [stored[0]] * 4
    assert stored[0][0].name == "endpoint in api (python)"


@pytest.mark.parametrize(
    ("mark", "module"), [(".git", "checkout/src"), ("checkout/go.mod", "src"), (None, "the project")]
)
def test_names_start_from_the_root_of_the_project(heart, tmp_path, mark, module):
    folder = tmp_path / "build" / "checkout" / "src"
    folder.mkdir(parents=True)
    (folder / "api.py").write_text(PYTHON, "utf-8")
    if mark:
        (tmp_path / "build" / mark).touch()

    learned = learn_patterns(heart, [folder], is_recorded=False)

    assert (learned.files_read, learned.patterns[0].name) == (1, f"endpoint in {module} (python)")


def test_two_projects_of_one_layout_keep_their_own_patterns(heart, tmp_path):
    stored = []
    for project in ("shop", "bank"):
        folder = tmp_path / project / "api"
        folder.mkdir(parents=True)
        (folder / "users.py").write_text(PYTHON.replace("NewUser", f"New{project}"), "utf-8")
        learned = learn_patterns(heart, [folder], project_id=project)
        assert not learned.refused
        stored.append(learned.procedures[0])

    assert [each.name for each in stored] == [
        "endpoint in the project (shop, python)", "endpoint in the project (bank, python)",
    ]  # fmt: skip
    assert [heart.get_procedure(each.id).template["validation"] for each in stored] == ["Newshop", "Newbank"]


def test_looking_stores_nothing(heart, tmp_path):
    (tmp_path / "api.py").write_text(PYTHON, "utf-8")

    assert learn_patterns(heart, [tmp_path], is_recorded=False).patterns
    assert not heart.list_procedures()


def test_a_path_that_is_not_there_is_named(heart, tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        learn_patterns(heart, [tmp_path / "nowhere"])
