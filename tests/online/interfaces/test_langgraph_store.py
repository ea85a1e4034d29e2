"""LangGraph's store over the heart, held to what LangGraph's own store in memory answers."""

from __future__ import annotations

import asyncio
import math
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.adapters.langgraph import PLACE, NousStore, name_of, parts_of

ITEMS = {
    (("users", "ada"), "prefs"): {"drink": "tea", "cups": 3},
    (("users", "ada"), "desk"): {"colour": "red", "cups": 1, "lamp": None},
    (("users", "ben"), "prefs"): {"drink": "coffee", "cups": 3.5},
    (("users", "ben", "old"), "prefs"): {"drink": ["milk", {"sugar": True}]},
    (("docs", "v1"), "a/b.c"): {"text": "Ünïcode & <tags>"},
}
FILTERS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("users",), {"drink": "tea"}),
    (("users",), {"drink": {"$ne": "tea"}}),
    (("users", "ada"), {"cups": {"$gte": 3}}),
    (("users", "ada"), {"cups": {"$gt": 1, "$lt": 3.5}}),
    (("users", "ada"), {"cups": {"$lte": 1}, "colour": "red"}),
    ((), {"lamp": {"$eq": None}}),
    ((), {"colour": "blue"}),
]
CONDITIONS: list[dict[str, Any]] = [
    {},
    {"prefix": ("users",)},
    {"prefix": ("users", "*")},
    {"suffix": ("old",)},
    {"suffix": ("*", "v1")},
    {"prefix": ("users",), "suffix": ("ben",)},
    {"prefix": ("users",), "max_depth": 2},
    {"max_depth": 1, "limit": 1, "offset": 1},
    {"prefix": ("a", "b", "c", "d")},
]


def filled(store: BaseStore) -> BaseStore:
    store.batch([PutOp(namespace, key, value) for (namespace, key), value in ITEMS.items()])
    return store


def known(found: Any) -> set[tuple[tuple[str, ...], str, str]]:
    return {(item.namespace, item.key, repr(item.value)) for item in found}


def test_items_come_back_as_they_were_put(heart):
    store, before = NousStore(heart), datetime.now(UTC)

    filled(store)

    for (namespace, key), value in ITEMS.items():
        item = store.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, value)
        assert before <= item.created_at == item.updated_at <= datetime.now(UTC)
    assert store.get(("users", "ada"), "shoes") is None
    assert store.get(("users",), "ada") is None


def test_searches_and_lists_answer_as_the_store_in_memory_does(heart):
    ours, theirs = filled(NousStore(heart)), filled(InMemoryStore())

    for prefix in ((), ("users",), ("users", "ada"), ("use",), ("docs", "v1")):
        assert known(ours.search(prefix)) == known(theirs.search(prefix)), prefix
    for prefix, wanted in FILTERS:
        assert known(ours.search(prefix, filter=wanted)) == known(theirs.search(prefix, filter=wanted)), wanted
    assert known(ours.search((), filter={"cups": {"$gt": 3}})) == known([ours.get(("users", "ben"), "prefs")])
    for asked in CONDITIONS:
        assert ours.list_namespaces(**asked) == theirs.list_namespaces(**asked), asked


def test_putting_again_keeps_the_moment_of_creation_and_the_old_value(heart, owner):
    store = filled(NousStore(heart))
    first = store.get(("users", "ada"), "prefs")

    store.put(("users", "ada"), "prefs", {"drink": "mate"})

    item = store.get(("users", "ada"), "prefs")
    assert item.value == {"drink": "mate"}
    assert item.created_at == first.created_at < item.updated_at
    named = "select content, state from heart.facts where subject = 'users/ada/prefs' order by learned_at"
    assert owner.execute(named).fetchall() == [
        ('{"drink": "tea", "cups": 3}', "superseded"),
        ('{"drink": "mate"}', "active"),
    ]


def test_what_is_deleted_is_archived_and_may_be_put_anew(heart):
    store = filled(NousStore(heart))

    store.delete(("users", "ada"), "prefs")
    store.delete(("users", "ada"), "never there")

    assert store.get(("users", "ada"), "prefs") is None
    assert heart.count() == {"active": 4, "archived": 1}
    store.put(("users", "ada"), "prefs", {"drink": "water"})
    assert store.get(("users", "ada"), "prefs").value == {"drink": "water"}


def test_a_query_ranks_by_meaning_and_leaves_out_what_is_not_indexed(heart):
    store = filled(NousStore(heart))
    store.put(("users", "eve"), "secret", {"drink": "tea tea tea"}, index=False)
    heart.learn("tea is served at nine")

    found = store.search(("users",), query="tea")
    second = store.search(("users",), query="tea", limit=1, offset=1)

    assert (found[0].namespace, found[0].key) == (("users", "ada"), "prefs")
    assert found[0].score > (found[1].score or 0)
    assert [item.key for item in second] == [found[1].key]
    assert known(found) == known(item for item in store.search(("users",)) if item.key != "secret")
    assert [each.content for each in heart.recall("tea")] == ["tea is served at nine"]
    assert heart.recall("tea cups", project_id=PLACE)[0].memory.subject in {"users/ada/prefs", None}


def test_a_batch_answers_as_things_stood_and_applies_the_last_put_of_each(heart):
    store = filled(NousStore(heart))
    place = ("users", "ada")

    answers = store.batch(
        [
            PutOp(place, "prefs", {"drink": "one"}),
            GetOp(place, "prefs"),
            PutOp(place, "prefs", {"drink": "two"}),
            SearchOp(place, {"drink": "tea"}),
            ListNamespacesOp(),
            PutOp(place, "desk", None),
        ]
    )

    assert [answers[0], answers[2], answers[5]] == [None] * 3
    assert answers[1].value["drink"] == "tea"
    assert [item.key for item in answers[3]] == ["prefs"]
    assert place in answers[4]
    assert store.get(place, "prefs").value == {"drink": "two"}
    assert store.get(place, "desk") is None


def test_a_batch_with_what_does_not_fit_changes_nothing(heart):
    store = filled(NousStore(heart))
    before = heart.count()

    for value in ({"score": math.nan}, {"when": datetime.now(UTC)}, {"text": "x" * 40_000}):
        with pytest.raises(InvalidInput):
            store.batch([PutOp(("a",), "good", {"fine": 1}), PutOp(("a",), "bad", value)])
    for value in (["a"], "a", 5):
        with pytest.raises(InvalidInput, match="must be a dict"):
            store.put(("a",), "bad", value)
    with pytest.raises(InvalidInput, match="index must be False or left out"):
        store.put(("a",), "bad", {"fine": 1, "other": 2}, index=["fine"])
    with pytest.raises(InvalidInput, match="it does not know '\\$like'"):
        store.search(("users",), filter={"drink": {"$like": "t"}})
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "key", {})

    assert heart.count() == before


def test_asynchronous_calls_are_served_at_once(heart):
    store = NousStore(heart)

    async def story() -> list[Any]:
        await asyncio.gather(*(store.aput(("rooms",), str(number), {"n": number}) for number in range(8)))
        return await asyncio.gather(*(store.aget(("rooms",), str(number)) for number in range(8)))

    assert [item.value for item in asyncio.run(story())] == [{"n": number} for number in range(8)]


def test_puts_of_one_key_at_once_all_succeed_and_one_of_them_holds(heart, owner):
    store, failures = NousStore(heart), list[Exception]()
    turns = threading.Barrier(6)

    def put(thread: int) -> None:
        turns.wait()
        try:
            for turn in range(5):
                store.put(("rooms",), "key", {"thread": thread, "turn": turn})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert heart.count() == {"active": 1, "superseded": 29}
    assert store.get(("rooms",), "key").value["turn"] == 4
    dates = owner.execute("select learned_at, valid_from from heart.facts order by learned_at").fetchall()
    assert {began for _, began in dates} == {dates[0][0]}


def test_names_of_any_script_have_room(heart):
    store, place, key = NousStore(heart), ("ユーザー" * 6,), "設定" * 20

    store.put(place, key, {"drink": "茶"})

    assert store.get(place, key).value == {"drink": "茶"}
    assert name_of((*place, key)) == f"{place[0]}/{key}"


@pytest.mark.parametrize(
    "parts",
    [("a", "b"), ("a/b", "c"), ("a", "b/c"), ("%2F", "ü %"), ("x y", "{k}.v"), ("a\x00\n", "\x85"), ("\udc80", "\\")],
)
def test_names_lead_back_to_namespace_and_key(parts):
    assert parts_of(name_of(parts)) == parts
    assert name_of(("a/b", "c")) != name_of(("a", "b/c"))
