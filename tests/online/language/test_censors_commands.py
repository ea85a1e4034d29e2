"""What shell commands do, in the words of a rule, and which rules that sets off."""

from __future__ import annotations

import time

import pytest

from benchmarks.censors import match
from nous_online.language.actions.action_words import spoken_words
from nous_online.language.actions.commands import read_command
from nous_online.language.actions.triggers import compare_words
from nous_online.memories.checking import parts_of


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git push -f origin main", "push force git -f origin main"),
        ("git push origin +topic", "push force git origin +topic"),
        ("git push origin --delete v2", "erase git origin --delete v2 push"),
        ("git commit -nm x", "bypass commit hooks git -nm x"),
        ("git checkout trunk && git rebase topic", "&& rebase git topic on trunk"),
        ("git switch -c topic trunk && git commit", "&& commit git on topic"),
        ("kubectl -n web delete pod a-1", "delete kubectl -n web pod a-1"),
        ("docker volume rm pgdata", "rm docker volume pgdata"),
        ("docker-compose down -v", "erase volumes docker -v docker-compose stop"),
        ("sudo apt-get -y remove nginx", "remove apt -y nginx sudo apt-get"),
        ("rm -rf build", "rm recursive force -rf build"),
        ("psql $PROD_URL -c 'DROP TABLE jobs'", "DROP TABLE jobs on $PROD_URL psql"),
        ("psql -c 'select 1'", "read select 1 on psql"),
        ("ssh web-1 docker exec app rm -rf /data", "rm recursive force -rf /data on app docker exec on web-1 ssh"),
        ("kubectl delete pod a-1 --dry-run=server", "check delete kubectl pod a-1 --dry-run=server"),
    ],
)
def test_a_command_is_read_in_words(command: str, words: str) -> None:
    read = read_command(command)

    assert read is not None
    assert read.words.split() == words.split()


@pytest.mark.parametrize(
    "text", ["make the room ready", "push to main", "sudo make me a sandwich", "git checkout main", ""]
)
def test_what_opens_with_no_known_command_stays_as_it_is(text: str) -> None:
    assert read_command(text) is None


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("don't force-push to trunk", "git push --force origin trunk", "near"),
        ("don't force-push to trunk", "git push origin trunk", None),
        ("don't force-push to main", "git push --force-with-lease origin topic/maps", None),
        ("never hard reset trunk", "git reset --hard trunk", "near"),
        ("never hard reset trunk", "git reset trunk", None),
        ("don't commit to trunk", 'git switch trunk && git commit -m "typo"', "near"),
        ("don't drop tables on the prod server", "mysql -h prod -e 'DROP TABLE guests'", "near"),
        ("don't drop tables on the prod server", "mysql -h prod -e 'SELECT * FROM guests'", None),
        ("never delete pods in prod", "kubectl --context prod delete pods web-1", "near"),
        ("never run rm -rf on the cache", "rm -rf /var/cache", "near"),
        ("`docker compose down -v`", "docker compose down", None),
        ("archive old reports, never erase them", "mv reports/old archive/", None),
    ],
)
def test_a_rule_is_set_off_by_the_command_that_does_what_it_forbids(
    trigger: str, action: str, expected: str | None
) -> None:
    assert match(trigger, action) == expected


@pytest.mark.parametrize(
    ("trigger", "action"),
    [
        ("don't chmod files to 777", "chmod 755 files"),  # the number of the rule is not said
        ("don't commit to trunk", 'git switch -c topic trunk && git commit -m "typo"'),
        ("deleting branches that are not merged", "git branch -d topic"),  # a command says nothing of a denial
        ("never delete pods in prod", "kubectl --context prod delete pods web-1 --dry-run=server"),
    ],
)
def test_a_command_that_leaves_something_of_the_rule_unsaid_does_not_block(trigger: str, action: str) -> None:
    assert not compare_words(trigger, action).is_near


@pytest.mark.parametrize("said", ["--force", "-uf", "+HEAD:trunk", "$FLAGS", "forcing it", "--force-if-includes"])
def test_only_a_command_that_surely_lacks_an_option_is_another_act(said: str) -> None:
    assert not compare_words("don't force-push to trunk", f"git push origin trunk {said}").is_unmet
    assert compare_words("don't force-push to trunk", "git push origin trunk").is_unmet


def test_a_branch_that_was_chosen_belongs_to_what_follows() -> None:
    action = "git checkout main && git merge topic; git push"

    assert parts_of(action, most=9) == (action, "git checkout main && git merge topic", "git checkout main && git push")
    assert parts_of("git checkout main", most=9) == ("git checkout main",)


@pytest.mark.parametrize(
    "piece", ["ssh ", "bash -c '", "docker exec ", "git push ", "--force ", "A=1 ", "sudo ", "'\"", "&& cd a "]
)
def test_a_hostile_command_is_read_in_linear_time(piece: str) -> None:
    began = time.process_time()

    for text in (piece * 4_000, f"ssh {piece * 4_000}", f"git {piece * 4_000}"):
        read_command(text)
        spoken_words(text)
        parts_of(text, most=12)

    assert time.process_time() - began < 1.0
