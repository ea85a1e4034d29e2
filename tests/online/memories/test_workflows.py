from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.heart import Heart
from nous_online.memories.workflows import Step, StepSequence, frequent_runs, step_line, steps_in, workflows_in

DEPLOY = ("test", "build", "stage", "verify", "prod")


def sequence(session: str, *names: str, title: str | None = None, outcome: str | None = None) -> StepSequence:
    return StepSequence(session, tuple(map(Step, names)), title, outcome)


def did(heart: Heart, *names: str, title: str = "Deploy billing", outcome: str = "success") -> None:
    episode = heart.start_episode(title)
    for name in names:
        heart.record_step(name)
    heart.close_episode(episode.id, outcome=outcome)


def test_steps_that_three_sessions_share_are_a_workflow():
    (found,) = workflows_in([sequence(session, *DEPLOY) for session in "abc"])

    assert tuple(step.name for step in found.steps) == DEPLOY
    assert found.sessions == ("a", "b", "c")


def test_twice_is_chance():
    assert not workflows_in([sequence(session, *DEPLOY) for session in "ab"])


def test_a_step_few_sessions_have_is_passed_over():
    sessions = [sequence("a", "test", "lunch", "build", "prod"), sequence("b", "test", "build", "phone call", "prod")]

    (found,) = workflows_in([*sessions, sequence("c", "test", "build", "prod")])

    assert [step.name for step in found.steps] == ["test", "build", "prod"]


def test_a_step_done_again_at_once_counts_once():
    (found,) = workflows_in([sequence(session, "test", "test", "Test", "build", "prod") for session in "abc"])

    assert [step.name.lower() for step in found.steps] == ["test", "build", "prod"]


def test_steps_in_another_order_are_not_the_same_workflow():
    assert not workflows_in([sequence("a", *DEPLOY), sequence("b", *DEPLOY), sequence("c", *reversed(DEPLOY))])


def test_a_run_inside_a_longer_one_stands_alone_only_when_it_is_far_commoner():
    longer = dict.fromkeys("abc", DEPLOY)

    assert list(frequent_runs({**longer, "d": DEPLOY[:3]})) == [DEPLOY]
    assert list(frequent_runs({**longer, **dict.fromkeys("defg", DEPLOY[:3])})) == [DEPLOY[:3], DEPLOY]


def test_runs_that_overlap_in_the_same_sessions_are_one_workflow_after_another():
    steps = [f"step {number}" for number in range(100)]

    twenty = workflows_in([sequence(session, *steps[:20], title="Deploy") for session in "abc"])
    hundred = workflows_in([sequence(session, *steps, title="Deploy") for session in "abc"])

    assert [[step.name for step in each.steps] for each in twenty] == [steps[:12], steps[12:20]]
    assert [step.name for each in hundred for step in each.steps] == steps


def test_runs_that_overlap_in_other_sessions_are_two_workflows():
    release = dict.fromkeys("abc", ("lint", "test", "pack"))
    rollout = dict.fromkeys("def", ("test", "pack", "push"))

    assert list(frequent_runs({**release, **rollout})) == [("lint", "test", "pack"), ("test", "pack", "push")]


def test_of_very_many_steps_those_of_the_latest_sessions_are_read():
    early = [sequence(f"early {at}", *DEPLOY) for at in range(3)]
    late = [
        sequence(f"late {at}", "wash", "dry", "fold", *(f"step {at} {number}" for number in range(197)))
        for at in range(110)
    ]

    found = workflows_in([*early, *late])

    assert found
    assert not any(step.name in DEPLOY for each in found for step in each.steps)
    assert {session for each in found for session in each.sessions} == {f"late {at}" for at in range(10, 110)}


def test_the_order_of_the_sessions_changes_nothing_that_is_found():
    sessions = [sequence(session, *DEPLOY, "tell", title="Deploy") for session in "abcd"]

    forwards, backwards = workflows_in(sessions), workflows_in(sessions[::-1])

    assert [(each.name, each.steps, set(each.sessions)) for each in forwards] == [
        (each.name, each.steps, set(each.sessions)) for each in backwards
    ]


def test_sessions_whose_outcome_nobody_told_are_not_judged():
    outcomes = {"a": "success", "b": "success", "c": "failure", "d": "ongoing", "e": None}

    (found,) = workflows_in([sequence(each, *DEPLOY, outcome=outcome) for each, outcome in outcomes.items()])

    assert found.support == 5
    assert found.success_share == pytest.approx(2 / 3)


def test_a_workflow_is_named_after_the_word_its_sessions_share():
    titles = ["Deploy billing", "Deploy of the shop", "deploy auth"]

    (found,) = workflows_in([sequence(str(at), *DEPLOY, title=title) for at, title in enumerate(titles)])
    (nameless,) = workflows_in([sequence(session, *DEPLOY) for session in "abc"])

    assert (found.name, nameless.name) == ("deploy", "test to prod")


def test_of_a_long_session_the_first_steps_are_read():
    steps = [f"step {number % 60}" for number in range(20_000)]

    found = workflows_in([sequence(session, *steps) for session in "abcd"])

    assert found
    assert all(len(each.steps) <= 12 for each in found)


def test_a_recorded_step_reads_back_as_it_was():
    steps = (Step("build", "docker build -t app ."), Step("verify"), Step("déploiement — étape 2"))

    assert steps_in("\n".join(["We began.", *map(step_line, steps), "Step back and think"])) == steps


def test_a_step_leaves_credentials_out():
    told = Step("login", "curl -H 'Authorization: Bearer sk-ant-api03-AbCdEf0123456789AbCdEf0123456789'")

    assert step_line(told) == "Step: login"


def test_a_workflow_leaves_credentials_out():
    key = "sk-ant-api03-AbCdEf0123456789AbCdEf0123456789"
    steps = (Step("login", f"curl -H 'Authorization: Bearer {key}'"), Step("build"), Step("ship"))
    (found,) = workflows_in([StepSequence(session, steps) for session in "abc"])

    assert [step.detail for step in found.steps] == [None, None, None]
    assert not workflows_in([sequence(session, f"export API_KEY={key}", "build", "ship") for session in "abc"])


def test_three_sessions_make_a_workflow_with_its_hint_and_its_counts(heart):
    for outcome in ("success", "success", "failure"):
        did(heart, *DEPLOY, outcome=outcome)

    (learned,) = heart.learn_workflows()

    assert learned.action == "stored"
    assert learned.procedure.compressed == "deploy: test→build→stage→verify→prod"
    assert (learned.procedure.success_count, learned.procedure.failure_count) == (2, 1)
    assert learned.procedure.source_kind == "episode"


def test_learning_workflows_again_counts_each_session_once(heart):
    for _ in range(3):
        did(heart, *DEPLOY)
    (first,) = heart.learn_workflows()
    did(heart, *DEPLOY, outcome="failure")

    (second,) = heart.learn_workflows()
    (third,) = heart.learn_workflows()

    assert (second.action, second.procedure.id) == ("known", first.procedure.id)
    assert (second.procedure.success_count, second.procedure.failure_count) == (3, 1)
    assert third.procedure == second.procedure


def test_a_workflow_told_by_hand_is_found_again_not_stored_twice(heart):
    told = heart.store_procedure("going live", kind="workflow", steps=[step.upper() for step in DEPLOY])
    for _ in range(3):
        did(heart, *DEPLOY)

    (learned,) = heart.learn_workflows()

    assert (learned.action, learned.procedure.id) == ("known", told.id)
    assert len(heart.list_procedures()) == 1


def test_a_name_that_is_taken_is_left_to_who_has_it(heart):
    told = heart.store_procedure("deploy", kind="workflow", steps=["call Ada"])
    for _ in range(3):
        did(heart, *DEPLOY)

    (learned,) = heart.learn_workflows()

    assert learned.procedure.name == "deploy 2"
    assert heart.get_procedure(told.id).steps == ["call Ada"]


def test_where_no_name_is_free_nobodys_workflow_is_overwritten(heart):
    for number in range(1, 51):
        heart.store_procedure("deploy" if number == 1 else f"deploy {number}", kind="workflow", steps=["call Ada"])
    for _ in range(3):
        did(heart, *DEPLOY)

    with pytest.raises(Refused, match="'deploy' to 'deploy 50'"):
        heart.learn_workflows()

    assert all(each.steps == ["call Ada"] for each in heart.list_procedures())


def test_a_workflow_that_several_threads_find_at_once_is_stored_once(heart):
    for _ in range(3):
        did(heart, *DEPLOY)
        did(heart, "lint", "pack", "push", title="Deploy web")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: heart.learn_workflows(deadline_s=30), range(4)))

    assert [len(answer) for answer in answers] == [2, 2, 2, 2]
    assert sorted((each.name, each.success_count) for each in heart.list_procedures()) == [
        ("deploy", 3),
        ("deploy 2", 3),
    ]
    assert sum(each.action == "stored" for answer in answers for each in answer) == 2


def test_looking_writes_nothing(heart):
    for _ in range(3):
        did(heart, *DEPLOY)

    (shown,) = heart.learn_workflows(is_recorded=False)

    assert (shown.action, shown.procedure) == ("found", None)
    assert not heart.list_procedures()


def test_steps_of_one_user_make_no_workflow_of_another(heart):
    for user in ("ada", "ben", "cyd"):
        episode = heart.start_episode("Deploy", user_id=user)
        for name in DEPLOY:
            heart.record_step(name)
        heart.close_episode(episode.id)

    assert not heart.learn_workflows()
    assert not heart.learn_workflows(user_id="ada")


def test_a_workflow_is_trusted_no_more_than_its_least_trusted_session(heart):
    for trust in (50, 20, 80):
        episode = heart.start_episode("Deploy", trust=trust)
        for name in DEPLOY:
            heart.record_step(name)
        heart.close_episode(episode.id)

    (learned,) = heart.learn_workflows()

    assert learned.procedure.trust == 20


def test_a_step_needs_an_open_episode_and_a_short_name(heart):
    with pytest.raises(NotFound, match="start_episode"):
        heart.record_step("build")
    with pytest.raises(InvalidInput, match="name of a step"):
        heart.record_step("build | ship")
    with pytest.raises(InvalidInput, match="keep the credential out") as refused:
        heart.record_step("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE")
    assert "wJalr" not in str(refused.value)
