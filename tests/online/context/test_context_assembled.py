from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from nous_online.context.context_lines import TIERS, Context, ContextLine
from nous_online.core.errors import DeadlineExceeded, InvalidInput, NotFound
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors
from nous_online.language.tokens import tokens_of

NOW = datetime.now(UTC)
YESTERDAY = NOW.replace(hour=6, minute=0) - timedelta(days=1)
FILE = "src/auth/login.py"


DAY = re.compile(r"(\d{4}-\d\d-\d\d to )?\d{4}-\d\d-\d\d ")


def undated(line: ContextLine) -> str:
    """Return a line without the date it begins with, which every memory has."""
    found = DAY.match(line.text)
    return line.text[found.end() :] if found else line.text


def texts(context: Context, tier: str) -> list[str]:
    return [undated(line) for line in context.lines if line.tier == tier]


def shown(context: Context) -> str:
    return "\n".join(map(undated, context.lines))


def reason_of(context: Context, text: str) -> str:
    (reason,) = [line.reason for line in context.lines if undated(line) == text]
    return reason


def contradiction(heart: Heart, judge, *statements: str, subject: str = "database", at: datetime | None = None):
    from nous_online.language.pairs.judging import Verdict

    judge.verdicts.update(dict.fromkeys(permutations(statements, 2), Verdict.CONTRADICTS))
    moments = [at and at + timedelta(hours=number) for number in range(len(statements))]
    told = zip(statements, moments, strict=True)
    return [heart.learn(each, subject=subject, learned_at=moment).memory for each, moment in told]


def test_an_agent_that_knows_nothing_gets_an_empty_text(heart):
    context = heart.assemble_context(query="what do we know?", signals={"current_file": FILE})

    assert context.text == ""
    assert context.token_count == 0
    assert context.lines == ()
    assert context.budget == 8_000


def test_each_memory_stands_in_the_tier_where_it_belongs_with_the_reason(heart):
    heart.learn("Deploys go through blue and green", is_pinned=True)
    heart.learn("Whether auth uses tokens or sessions is not decided", category="open_question")
    heart.learn("Python has type hints everywhere", category="convention")
    heart.learn("Payments go through Stripe webhooks")
    heart.record_decision("Sessions for login", rationale="Tokens grew too large.", files=[FILE])
    heart.add_censor("deploy on Friday", reason="nobody is there", severity="block")
    heart.store_procedure("release", steps=["test", "build", "stage"], kind="workflow")

    context = heart.assemble_context(query="Stripe payments webhooks?", signals={"current_file": FILE})

    assert "Deploys go through blue and green" in texts(context, "critical")
    assert "open question: Whether auth uses tokens or sessions is not decided" in texts(context, "critical")
    assert "decided: Sessions for login: Tokens grew too large." in texts(context, "critical")
    assert "never deploy on Friday: nobody is there" in texts(context, "critical")
    assert texts(context, "relevant")[0] == "Payments go through Stripe webhooks"
    assert reason_of(context, "Deploys go through blue and green") == "pinned"
    assert reason_of(context, "decided: Sessions for login: Tokens grew too large.").endswith("pending, for this file")
    assert "for the question" in reason_of(context, "Payments go through Stripe webhooks")
    assert context.text.startswith(f"# Critical\n- {NOW:%Y-%m-%d} ")


def test_an_open_contradiction_is_one_line_with_both_statements(heart, judge):
    one, other = contradiction(heart, judge, "The database is Postgres", "The database is Mongo", at=YESTERDAY)

    context = heart.assemble_context(query="which database?")

    (line,) = [line for line in context.lines if line.kind == "contradiction"]
    day = f"{YESTERDAY:%Y-%m-%d}"
    assert line.text == f"unresolved: The database is Mongo ({day} 07:00) / The database is Postgres ({day} 06:00)"
    assert set(line.memory_ids) == {one.id, other.id}
    assert line.reason.startswith("they contradict each other, since ")
    assert context.text.count("The database is Postgres") == 1


def test_the_oldest_of_many_contradictions_is_shown_where_it_is_asked_about(heart, judge):
    for number in range(22):
        contradiction(heart, judge, f"Server {number} is red", f"Server {number} is blue", subject=f"server {number}")

    context = heart.assemble_context(query="server 0")

    shown = texts(context, "critical")[0]
    assert re.fullmatch(r"unresolved: Server 0 is blue \(.*\) / Server 0 is red \(.*\)", shown)


def test_facts_of_one_day_and_topic_show_their_times_and_others_the_day(heart):
    for hour, said in enumerate(("The gate is shut", "Ana opened the gate", "Ben painted the gate")):
        heart.learn(said, subject="gate", learned_at=YESTERDAY + timedelta(hours=hour))
    heart.learn("Stripe handles payments", subject="payments", learned_at=YESTERDAY)

    context = heart.assemble_context(query="who opened the gate, and who handles payments?")

    day = f"{YESTERDAY:%Y-%m-%d}"
    assert f"- {day} 07:00 Ana opened the gate" in context.text
    assert f"- {day} 08:00 Ben painted the gate" in context.text
    assert f"- {day} Stripe handles payments" in context.text


def test_two_facts_of_which_one_alone_is_long_contradict_each_other_in_one_line(heart, judge):
    long = "The database is Postgres, " + ", ".join(f"with table {number} on disk {number}" for number in range(100))
    contradiction(heart, judge, long, "The database is Mongo")

    context = heart.assemble_context(query="which database?", budget=1_000)

    (line,) = [line for line in context.lines if line.kind == "contradiction"]
    assert line.text.startswith("unresolved: database: Mongo (")
    assert " … (" in line.text.partition(" / The database is Postgres")[2]


def test_what_is_pinned_is_shown_whole_and_the_opening_of_a_long_answer_too(heart):
    pin = "Answer Ana in German, " + ", ".join(f"spell word {number} as term {number}" for number in range(70))
    runbook = "The quota runbook: " + ", ".join(f"then quota {number} of the runbook restarts" for number in range(150))
    heart.learn(pin, subject="house style", is_pinned=True)
    heart.learn(runbook, subject="quota runbook")
    for number in range(40):
        heart.learn(f"The quota of service {number} is {number * 7}", category="convention" if number % 3 else None)

    context = heart.assemble_context(query="quota runbook", frame="conversation")

    assert any(pin in text for text in texts(context, "critical"))
    assert any(text.endswith(" …") and text[:-2] in runbook for text in texts(context, "relevant"))


def test_a_resolved_contradiction_shows_the_winner_alone(heart, judge):
    one, _ = contradiction(heart, judge, "The database is Postgres", "The database is Mongo")
    (open_one,) = heart.contradictions()
    heart.resolve_contradiction(open_one.id, "a_wins" if open_one.memory_a == one.id else "b_wins")

    context = heart.assemble_context(query="which database?")

    assert shown(context) == "The database is Postgres"


def test_what_was_superseded_archived_or_has_expired_is_never_shown(heart):
    old = heart.learn("We deploy by hand on Fridays", is_pinned=True).memory
    new = heart.learn("The robots deploy every morning").memory
    heart.supersede_fact(old.id, new.id, reason="we have robots now")
    heart.learn("The code freeze holds", valid_to=NOW - timedelta(days=1), is_pinned=True)
    heart.learn("The merger is public", valid_from=NOW + timedelta(days=1), category="convention")
    heart.add_censor("touch the billing", reason="audit", severity="block", expires_at=NOW - timedelta(hours=1))

    context = heart.assemble_context(query="deploy code freeze merger billing")

    for gone in ("by hand", "freeze holds", "merger is public", "touch the billing"):
        assert gone not in context.text


def test_a_context_of_the_past_shows_what_stood_then(heart):
    old = heart.learn("We deploy by hand", learned_at=NOW - timedelta(days=30), is_pinned=True).memory
    new = heart.learn("The robots deploy", is_pinned=True).memory
    heart.supersede_fact(old.id, new.id, reason="we have robots now")

    context = heart.assemble_context(at=NOW - timedelta(days=10))

    assert texts(context, "critical") == ["We deploy by hand"]


def test_a_context_of_the_past_shows_no_steps_that_were_told_since(heart):
    heart.store_procedure("release", steps=["by hand"], kind="workflow", learned_at=NOW - timedelta(days=30))
    before = NOW - timedelta(days=10)
    assert "by hand" in heart.assemble_context(at=before).text

    heart.store_procedure("release", steps=["by robot"], kind="workflow")

    assert heart.assemble_context(at=before).text == ""
    assert "by robot" in heart.assemble_context().text


def test_what_belongs_to_others_is_out_of_reach(heart):
    heart.learn("Ana likes tabs", user_id="ana", is_pinned=True)
    heart.learn("The moon project uses Rust", scope="project", project_id="moon", category="convention")
    heart.learn("Everybody greets", scope="system", is_pinned=True)

    of_nobody = heart.assemble_context(query="tabs Rust")
    of_ana = heart.assemble_context(query="tabs Rust", user_id="ana", project_id="moon")

    assert "Ana" not in of_nobody.text
    assert "Rust" not in of_nobody.text
    assert {"Ana likes tabs", "Everybody greets"} <= set(texts(of_ana, "critical"))
    assert "The moon project uses Rust" in of_ana.text


def test_one_user_sees_neither_the_session_nor_the_decisions_of_nobody_in_particular(heart):
    heart.focus("help alice with her divorce")
    heart.load_context(note="alice is getting divorced")
    heart.open_thread("call the lawyer of alice")
    heart.record_decision("Alice sues her employer", rationale="She was told to leave.")

    assert heart.assemble_context(user_id="bob").text == ""
    assert heart.assemble_context(project_id="moon").text == ""
    assert "call the lawyer of alice" in heart.assemble_context().text
    assert "decided: Alice sues her employer" in heart.assemble_context().text


def test_one_user_sees_the_decisions_of_their_session_and_their_file(heart):
    heart.record_decision("Keep sessions in Redis", session_id="s1")
    heart.record_decision("Hash passwords with Argon", files=[FILE])
    heart.record_decision("Paint the office green")

    of_bob = heart.assemble_context(user_id="bob", session_id="s1", signals={"current_file": FILE})

    assert texts(of_bob, "critical") == ["decided: Hash passwords with Argon", "decided: Keep sessions in Redis"]
    assert "Paint" not in of_bob.text


def test_a_decision_was_pending_before_it_was_resolved(heart):
    decision = heart.record_decision("Use Kafka", decided_at=NOW - timedelta(days=10))
    heart.resolve_decision(decision.id, status="failed", outcome="The queue was lost.", at=NOW - timedelta(days=5))

    (line,) = heart.assemble_context(at=NOW - timedelta(days=7)).lines

    assert line.reason.endswith("pending")


def test_no_agent_sees_what_another_one_knows(heart, database, embedder, judge):
    heart.learn("The launch code is in the safe", is_pinned=True)
    other = Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)

    assert other.assemble_context(query="launch code").text == ""


def test_the_budget_is_never_exceeded_and_no_memory_comes_twice(heart):
    for number in range(40):
        heart.learn(f"Service {number} stores its 🦊 data in database number {number}", is_pinned=number % 3 == 0)

    for budget in (1, 20, 60, 150, 400, 2_000):
        context = heart.assemble_context(query="where does service 7 store its data?", budget=budget)

        ids = [each for line in context.lines for each in line.memory_ids]
        assert tokens_of(context.text) == context.token_count <= budget
        assert sum(context.tokens.values()) <= budget + len(TIERS)
        assert len(ids) == len(set(ids)), budget


def test_what_is_not_shown_is_pointed_at_and_counted(heart):
    for number in range(60):
        heart.learn(f"Service {number} stores its data in database number {number}", subject=f"service {number}")

    context = heart.assemble_context(query="where does a service store its data?", budget=250)

    assert context.text.splitlines()[-2] == "# Ask me about"
    assert context.left_out["relevant"] > 0
    assert {line.level for line in context.lines if line.tier == "index"} == {"index"}


def test_the_fix_of_an_error_is_critical_while_it_is_seen(heart):
    heart.learn("KeyError tenant was fixed by setting the default tenant")

    context = heart.assemble_context(signals={"recent_errors": ["KeyError tenant"], "activity": "debugging"})

    assert texts(context, "critical") == ["KeyError tenant was fixed by setting the default tenant"]
    assert "for the error 'KeyError tenant'" in context.lines[0].reason


def test_nothing_that_is_little_trusted_becomes_critical_unless_it_is_pinned(heart):
    heart.learn("KeyError tenant is fixed by running a script as root", source_kind="tool", trust=20)
    heart.learn("Whether the passwords are in the mail", category="open_question", trust=20)
    heart.learn("Greet everybody", is_pinned=True, trust=20)
    heart.record_episode("The page says to obey.", title="Visit", outcome="failure", trust=20)

    context = heart.assemble_context(signals={"recent_errors": ["KeyError tenant"], "activity": "debugging"})

    assert texts(context, "critical") == ["Greet everybody"]
    assert "KeyError tenant is fixed by running a script as root" in texts(context, "relevant")


def test_what_failed_lately_is_critical_and_what_failed_long_ago_is_not(heart):
    heart.record_episode("The migration broke.", title="Migration", outcome="failure")
    long_ago = NOW - timedelta(days=3)
    heart.record_episode(
        "The rollback broke.", title="Rollback", outcome="failure", started_at=long_ago, ended_at=long_ago
    )

    critical = "\n".join(texts(heart.assemble_context(), "critical"))

    assert "Migration" in critical
    assert "Rollback" not in critical


@pytest.mark.parametrize("told", [f"./{FILE}", "src//auth/login.py", "src\\auth\\login.py", "src/auth/./login.py"])
@pytest.mark.parametrize("kept", [FILE, f"./{FILE}", "src\\auth\\login.py"])
def test_a_file_is_the_same_however_it_is_spelled(heart, told, kept):
    heart.record_decision("Keep sessions in Redis", files=[kept])

    (line,) = heart.assemble_context(signals={"current_file": told}).lines

    assert line.tier == "critical"
    assert line.reason.endswith("for this file")


def test_the_session_tells_task_frame_notes_and_what_is_left_open(heart):
    heart.learn("Cookies expire after an hour")
    heart.focus("mend the cookies", session_id="s1", frame="debug")
    heart.load_context(session_id="s1", note="the clock is wrong")
    heart.open_thread("ask Tim", session_id="s1")

    context = heart.assemble_context(session_id="s1")

    assert "still open: ask Tim" in texts(context, "critical")
    assert "note: the clock is wrong" in texts(context, "relevant")
    assert "for the task" in reason_of(context, "Cookies expire after an hour")


def test_a_context_takes_feedback_like_a_recall(heart, owner):
    pinned = heart.learn("Deploys go through blue and green", is_pinned=True).memory
    found = heart.learn("Payments go through Stripe").memory

    context = heart.assemble_context(query="Stripe payments", session_id="s1")
    cited = heart.cite(context.recall_id, [pinned.id, found.id])

    counts = dict(owner.execute("select memory_id, (retrieved_count, cited_count)::text from heart.usage").fetchall())
    logged = owner.execute("select query, session_id, query_embedding from heart.recalls").fetchall()
    assert cited == 2
    assert counts == {pinned.id: "(0,1)", found.id: "(1,1)"}
    assert logged == [("context: Stripe payments", "s1", None)]


@pytest.mark.parametrize("days", [-300, 300])
def test_looking_at_another_moment_is_no_use_and_no_sighting(heart, owner, days):
    heart.learn("Tokens expire after an hour", learned_at=NOW - timedelta(days=400))

    context = heart.assemble_context(
        query="tokens expire", at=NOW + timedelta(days=days), session_id="s1", signals={"current_file": FILE}
    )

    (logged,) = owner.execute("select recalled_at, as_of, result_scores from heart.recalls").fetchall()
    assert texts(context, "relevant") == ["Tokens expire after an hour"]
    assert abs(logged[0] - NOW) < timedelta(hours=1)
    assert logged[1:] == (NOW + timedelta(days=days), [0.0])
    assert owner.execute("select count(*) from heart.sightings").fetchall() == [(0,)]
    assert owner.execute("select retrieved_count, last_used_at from heart.usage").fetchall() == [(0, None)]


def test_open_threads_without_room_are_counted(heart):
    for number in range(30):
        heart.open_thread(f"ask Tim about service {number}", session_id="s1")

    context = heart.assemble_context(session_id="s1", budget=200)

    assert len(texts(context, "critical")) + context.left_out["critical"] == 30
    assert context.left_out["critical"] > 0


def test_feedback_on_what_was_not_shown_is_refused(heart):
    heart.learn("Payments go through Stripe")
    context = heart.assemble_context(query="Stripe")

    with pytest.raises(NotFound):
        heart.cite("00000000-0000-0000-0000-000000000001", [])
    with pytest.raises(InvalidInput):
        heart.cite(context.recall_id, ["00000000-0000-0000-0000-000000000001"])


def test_the_same_question_gives_the_same_text(heart):
    for number in range(30):
        heart.learn(f"Service {number} stores its data in database number {number}")

    once, again = (heart.assemble_context(query="where is the data of service 7?", budget=600) for _ in range(2))

    assert once.text == again.text


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"budget": 0}, "budget"),
        ({"query": 7}, "query must be text"),
        ({"signals": {"mood": "good"}}, "unknown signal 'mood'"),
        ({"at": "yesterday"}, "ISO 8601"),
        ({"frames": "debug"}, "unknown detail 'frames'"),
    ],
)
def test_what_makes_no_sense_is_refused(heart, details, said):
    with pytest.raises(InvalidInput, match=said):
        heart.assemble_context(**details)


class BrokenEmbedder:
    def __init__(self, inner) -> None:
        self.space = inner.space

    def embed_documents(self, texts) -> Vectors:
        raise RuntimeError("no model here")


def test_a_broken_embedder_leaves_the_words_and_is_not_needed_without_a_question(database, embedder, heart):
    heart.learn("Deploys go through blue and green", is_pinned=True)
    broken = Heart.open("aria", database=database, embedder=BrokenEmbedder(embedder), works_in_background=False)

    assert broken.assemble_context(query="deploys").is_by_words
    assert not broken.assemble_context().is_by_words
    assert texts(broken.assemble_context(), "critical") == ["Deploys go through blue and green"]


def test_a_context_ends_by_its_deadline(heart):
    with pytest.raises(DeadlineExceeded):
        heart.assemble_context(query="anything", deadline_s=0.000_001)


def test_an_answer_far_below_the_best_one_is_shown_while_there_is_room(heart):
    heart.learn("Payments reach us through Stripe webhooks")
    heart.learn("The bus will reach us at nine")

    best, weak = heart.recall("Do payments reach us through Stripe webhooks?")
    context = heart.assemble_context(query="Do payments reach us through Stripe webhooks?")

    assert 0.15 <= weak.score < 0.3 * best.score
    assert texts(context, "relevant") == [best.content, weak.content]
