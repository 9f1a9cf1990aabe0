"""A study at Prolific, against a stand-in of its API: every command, every fault, every kill."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

pytest.importorskip("uvicorn", reason="the extra giccs[study] is not installed")

from mturk.cli import main
from mturk.study import prolific_api
from mturk.study.client import ServiceError
from mturk.study.ledger import Ledger
from mturk.study.prolific_api import Prolific, UnknownResultError, read_token, resolve_prolific
from tests.mturk.conftest import _listen, _serving
from tests.mturk.study.killable_process import changes, first_of_each
from tests.mturk.study.prolific_stand_in import TOKEN, StandIn
from tests.nightly import first_in_ci

DRAFT = """
name = "Wie ähnlich sind Äußerungen?"
description = "Sie vergleichen Äußerungen."
external_study_url = "https://study.example.org/join/pilot?PROLIFIC_PID={{%PROLIFIC_PID%}}&SESSION_ID={{%SESSION_ID%}}"
reward = "1.50"
total_available_places = 8
estimated_completion_time = 9
[[completion_codes]]
code = "C0DE"
code_type = "COMPLETED"
actions = [{ action = "MANUALLY_REVIEW" }]
[[completion_codes]]
code = "0UT"
code_type = "FIXED_SCREENOUT"
actor = "researcher"
actions = [{ action = "FIXED_SCREEN_OUT_PAYMENT", fixed_screen_out_reward = "0.20", slots = 5 }]
"""
MESSAGE = "The answers are the same for each question, and the attention checks were not read. " * 2
FAULTS = (
    "429", "500", "500 after", "drop before", "drop after", "hang after",
)  # fmt: skip


class Session:
    """The stand-in, listening, and a folder in which commands run."""

    def __init__(self, folder, url, service):
        self.folder, self.url, self.service = folder, url, service
        (folder / "study.toml").write_text(DRAFT, "utf-8")
        self.ledger = folder / "prolific.db"
        self.waits = []

    def arguments(self, *arguments):
        endpoint = ["--endpoint", self.url] if arguments[0] == "draft" else []
        return ["prolific", *map(str, arguments), "--ledger", str(self.ledger), *endpoint]

    def run(self, *arguments, code=0, typed=None):
        result = CliRunner().invoke(main, self.arguments(*arguments), input=typed)
        assert result.exit_code == code, result.output
        assert TOKEN not in result.output
        return result.output

    def killed(self, process, *arguments, kill=0):
        """Run a command that is killed at a step; return what KillableProcess.run does."""
        return process.run(*self.arguments(*arguments), kill=kill)

    def status(self, *arguments):
        result = CliRunner().invoke(main, self.arguments(*arguments))
        assert result.exit_code in (0, 1), result.output
        return result.exit_code

    def json(self, *arguments, code=0):
        result = CliRunner().invoke(main, [*self.arguments(*arguments), "--json"])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def draft(self):
        return self.json("draft", self.folder / "study.toml")["study_id"]

    def publish(self):
        study_id = self.draft()
        self.run("publish")
        return study_id

    def bonuses(self, *rows):
        path = self.folder / "bonuses.csv"
        path.write_text("\n".join(["submission_id,amount,reason", *rows, ""]))
        return path

    def stored(self):
        with Ledger.open(self.ledger) as book:
            return {one.assignment_id: one.status for one in book.assignments()}


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("PROLIFIC_TOKEN", TOKEN)
    monkeypatch.setattr(prolific_api, "TIMEOUT_SECONDS", 5.0)
    service = StandIn()
    with ExitStack() as stack:
        listening = stack.enter_context(_listen())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        stack.enter_context(_serving(service.app, listening))
        made = Session(tmp_path, url, service)
        init = Prolific.__init__
        monkeypatch.setattr(
            Prolific, "__init__",
            lambda api, endpoint, token: init(api, endpoint, token, sleep=made.waits.append),
        )  # fmt: skip
        yield made


def test_a_study_from_draft_to_bonus(session):
    service = session.service
    made = session.json("draft", session.folder / "study.toml")
    assert (made["places"], made["reward"], made["cost"]) == (8, "1.50", "16.00")
    study = service.only_study()
    assert (study["reward"], study["status"]) == (150, "UNPUBLISHED")
    assert study["completion_codes"][1]["actions"][0]["fixed_screen_out_reward"] == 20
    assert "8 places: 16.00" in session.run("publish")
    assert service.only_study()["status"] == "ACTIVE"

    ids = [service.submit(study["id"]) for _ in range(4)]
    working = service.submit(study["id"], "ACTIVE")
    service.submit(study["id"], "RETURNED")
    seen = session.json("status")
    assert (seen["status"], seen["places"], seen["free"]) == ("ACTIVE", 8, 3)
    assert seen["submissions"] == {"AWAITING REVIEW": 4, "ACTIVE": 1, "RETURNED": 1}
    assert ids[0] in session.run("review")

    session.run("review", "--reject", ids[0], "--category", "LOW_EFFORT", "--message", MESSAGE)
    session.run("review", "--screen-out", working)
    done = session.json("review", "--approve-submitted")
    assert (done["approve"], done["refused"]) == (3, 0)
    counts = Counter(session.stored().values())
    assert counts == {"APPROVED": 3, "REJECTED": 1, "SCREENED OUT": 1, "RETURNED": 1}

    bonuses = session.bonuses(
        f"{ids[1]},0.50,careful", f"{ids[1]},0.50,fast", f"{ids[2]},1.25,careful"
    )
    assert "3 bonuses: 3.00" in session.run("bonus", bonuses)
    assert session.json("bonus", bonuses)["paid_before"] == 3
    assert service.paid() == sorted(
        [("reward", one, 150) for one in ids[1:]] + [("screen out", working, 20)]
        + [("bonus", ids[1], 50)] * 2 + [("bonus", ids[2], 125)]
    )  # fmt: skip


def test_pause_start_stop_places_and_reclaimed_places(session):
    study_id = session.publish()
    study = session.service.only_study()
    assert session.json("publish") == {"status": "ACTIVE", "changed": False}
    assert session.json("pause") == {"status": "PAUSED", "changed": True}
    assert session.json("pause") == {"status": "PAUSED", "changed": False}
    assert session.json("start")["status"] == "ACTIVE"
    for status in ["AWAITING REVIEW"] * 6 + ["RETURNED", "TIMED-OUT"]:
        session.service.submit(study_id, status)
    study["status"] = "PAUSED"  # as Prolific does with a full study of which a place is returned
    assert session.json("reclaim") == {"free": 2, "status": "ACTIVE"}
    session.run("places", "--total", "7", code=2)
    assert session.json("places", "--total", "10") == {"places": 10, "before": 8}
    assert session.json("places", "--total", "10") == {"places": 10, "before": 10}
    assert session.json("stop", "--yes")["status"] == "AWAITING REVIEW"
    assert "places --total 14` opens it again" in session.run("reclaim", code=1)
    assert "expected ACTIVE" in session.run("pause", code=1)


def test_drafts_are_created_once_even_without_the_ledger(session):
    study_id = session.draft()
    assert session.draft() == study_id
    for _ in range(5):  # more than a page of the list
        session.service.create({"internal_name": "another"})
    session.ledger.unlink()
    assert session.draft() == study_id
    assert len(session.service.state["studies"]) == 6
    (session.folder / "study.toml").write_text(DRAFT.replace("1.50", "1.60"), "utf-8")
    assert "a ledger contains one study" in session.run(
        "draft", session.folder / "study.toml", code=2
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('reward = "1.50"', "reward = 150", "reward is 150; expected an amount as a text"),
        ('"0.20"', "20", "fixed_screen_out_reward is 20; expected an amount"),
        ('"0.20"', '"20"', "fixed_screen_out_reward is 20.00; expected at most the reward, 1.50"),
        ('reward = "1.50"', "", "reward is missing"),
        ("{{%PROLIFIC_PID%}}", "", "external_study_url does not contain {{%PROLIFIC_PID%}}"),
        ("places = 8", 'places = "8"', "6: total_available_places is '8'; expected an integer"),
        ("places = 8", "places = 0", "6: total_available_places is 0; expected an integer of at least 1"),
        ("places = 8", "place = 8", "6: unknown key total_available_place; did you mean"),
    ],
)  # fmt: skip
def test_misreadable_drafts_are_refused(session, old, new, message):
    (session.folder / "study.toml").write_text(DRAFT.replace(old, new), "utf-8")
    assert message in session.run("draft", session.folder / "study.toml", code=2)
    assert session.service.calls == []


def test_decisions_that_prolific_would_refuse(session):
    study_id = session.publish()
    one = session.service.submit(study_id)
    short = ("review", "--reject", one, "--category", "NO_DATA", "--message", "bad")
    assert "expects at least 100" in session.run(*short, code=2)
    assert "expected TOO_QUICKLY" in session.run(
        "review", "--reject", one, "--category", "BAD", "--message", MESSAGE, code=2
    )
    assert "not handed in" in session.run("review", "--approve", "f" * 24, code=2)
    assert "one decision each" in session.run(
        "review", "--approve", one, "--screen-out", one, code=2
    )
    session.run("review", "--approve", one)
    assert "is APPROVED" in session.run(
        "review", "--reject", one, "--category", "NO_DATA", "--message", MESSAGE, code=1
    )


def test_costs_are_typed_to_confirm_at_a_remote_service(session, monkeypatch):
    study_id = session.draft()
    monkeypatch.setattr("mturk.study.prolific_api.resolve_prolific", remote)
    assert "8 places: 16.00" in session.run("publish", code=2, typed="1\n")
    assert session.service.only_study()["status"] == "UNPUBLISHED"
    session.run("publish", typed="16.00\n")
    one = session.service.submit(study_id)
    session.run("status")
    bonuses = session.bonuses(f"{one},3.00,careful")
    assert "1 bonuses: 4.00" in session.run("bonus", bonuses, code=2, typed="3.00\n")
    session.run("places", "--total", "9", code=2, typed="\n")
    session.run("review", "--screen-out", one, code=2, typed="\n")
    assert session.service.paid() == []
    session.run("bonus", bonuses, "--yes")
    assert session.service.paid() == [("bonus", one, 300)]


def test_amounts_in_pence_are_confirmed_even_with_yes(session, monkeypatch):
    (session.folder / "study.toml").write_text(DRAFT.replace('"1.50"', '"150"'), "utf-8")
    doubt = "the pay is 1000.00 per hour; expected 5 to 100"
    assert doubt in session.run("draft", session.folder / "study.toml")
    monkeypatch.setattr("mturk.study.prolific_api.resolve_prolific", remote)
    assert doubt in session.run("publish", "--yes", code=2, typed="\n")
    assert session.service.only_study()["status"] == "UNPUBLISHED"
    session.run("publish", "--yes", typed="1600.00\n")
    assert doubt in session.run("places", "--total", "9", "--yes", code=2, typed="\n")
    assert session.service.only_study()["total_available_places"] == 8


def test_a_bonus_in_pence_is_confirmed_even_with_yes(session, monkeypatch):
    study_id = session.publish()
    one = session.service.submit(study_id)
    session.run("status")
    monkeypatch.setattr("mturk.study.prolific_api.resolve_prolific", remote)
    bonuses = session.bonuses(f"{one},50,careful")
    assert "a bonus is 50.00; expected at most 15.00" in session.run(
        "bonus", bonuses, "--yes", code=2, typed="\n"
    )
    assert session.service.paid() == []
    session.run("bonus", session.bonuses(f"{one},15.00,careful"), "--yes")


def remote(address):
    return type("Endpoint", (), {"url": address, "loopback": False})()


def flow(session):
    """Commands that pay and publish, each with its preparation at Prolific and what is paid afterwards."""
    service = session.service
    draft = ("draft", session.folder / "study.toml")
    session.run(*draft)
    study_id = service.only_study()["id"]
    session.run("publish")
    one, two, three, four = (service.submit(study_id) for _ in range(4))
    session.run("status")
    approved = [("reward", one, 150), ("reward", three, 150)]
    review = (
        "review", "--approve", one, "--approve", three, "--reject", two, "--category", "OTHER", "--message",
        MESSAGE, "--screen-out", four,
    )  # fmt: skip
    bonuses = session.bonuses(f"{one},0.50,a", f"{one},0.50,b", f"{three},1.00,a")
    paid = [("bonus", one, 50)] * 2 + [("bonus", three, 100)]
    return [
        (draft, []),
        (("publish",), []),
        (("status",), []),
        (("places", "--total", "12"), []),
        (review, sorted([*approved, ("screen out", four, 20)])),
        (("bonus", bonuses), sorted(paid)),
    ]


def check(session, arguments, paid):
    """Check that the command had its effect once: nothing is doubled, nothing is lost."""
    service = session.service
    assert len(service.state["studies"]) == 1
    assert len(service.state["published"]) <= 1
    assert service.paid() == paid, arguments
    if arguments[0] == "publish":
        assert len(service.state["published"]) == 1
    if arguments[0] not in ("draft", "publish"):
        assert session.stored().keys() == service.state["submissions"].keys()
    if arguments[0] == "places":
        assert service.only_study()["total_available_places"] == 12


def prepared(session):
    """Return the commands with what they pay, and a function that restores the state before one."""
    commands = flow(session)
    service, ledger = session.service, session.ledger
    state, saved = service.snapshot(), copy_of(ledger)

    def prepare(arguments):
        for path in ledger.parent.glob("prolific.db*"):
            if path.suffix != ".key":
                path.unlink()
        service.restore(state)
        if arguments[0] in ("draft", "publish"):
            service.state |= {"submissions": {}, "published": []}
            service.only_study()["status"] = "UNPUBLISHED"
        if arguments[0] == "draft":
            service.state["studies"] = {}
        else:
            ledger.write_bytes(saved)

    return commands, prepare


def copy_of(ledger):
    with sqlite3.connect(ledger) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return ledger.read_bytes()


def complete(session, arguments, run):
    """Run a command again; decide on unknown bonuses as a person would who looks at Prolific."""
    status = run(*arguments)
    if status == 1 and arguments[0] == "bonus":
        with Ledger.open(session.ledger) as book:
            unknown = {action.target for action in book.actions("sent")}
        # of the batch in question nothing was paid: else it would be listed
        status = run(*arguments, *(word for one in sorted(unknown) for word in ("--unpaid", one)))
    assert status == 0


def restore(session, ledger):
    """Replace the ledger by a copy or, with None, by a new one."""
    for path in session.ledger.parent.glob("prolific.db*"):
        if path.suffix != ".key":
            path.unlink()
    if ledger is not None:
        session.ledger.write_bytes(ledger)
        return
    session.run("draft", session.folder / "study.toml")
    session.run("status")


@pytest.mark.parametrize("is_all", first_in_ci([False, True]))
def test_no_bonus_is_paid_twice_with_a_lost_or_an_old_ledger(session, killable_process, is_all):
    """The payments at each step, with the ledgers of the steps before (or two of them) and with none."""
    commands, prepare = prepared(session)
    bonus, paid = next((words, paid) for words, paid in commands if words[0] == "bonus")
    states = {}
    prepare(bonus)
    steps = session.killed(killable_process, *bonus)["steps"]
    for kill, step in enumerate(steps, start=1):
        if not changes(step):
            continue
        prepare(bonus)
        session.killed(killable_process, *bonus, kill=kill)
        key = (actions_of(session), tuple(session.service.paid()))
        states.setdefault(key, (copy_of(session.ledger), session.service.snapshot()))
    assert [*dict.fromkeys(paid for _, paid in states)] == [(), (paid[0], paid[2]), tuple(paid)]
    ledgers, snapshots = zip(*states.values(), strict=True)
    stopped = 0
    last = {paid: number for number, (_, paid) in enumerate(states, start=1)}
    for number in range(1, len(states) + 1) if is_all else last.values():
        snapshot = snapshots[number - 1]
        before = ledgers[:number] if is_all else {ledgers[0], ledgers[number - 1]}
        for ledger in [None, *before]:
            session.service.restore(snapshot)
            restore(session, ledger)
            paid_before = session.service.paid()
            result = CliRunner().invoke(main, session.arguments(*bonus))
            if "does not know; nothing was paid" in result.output:
                assert session.service.paid() == paid_before
                listed = re.findall("^[0-9a-f]{24}(?=: )", result.output, re.MULTILINE)
                session.run(*bonus, *(word for one in listed for word in ("--paid", one)))
                stopped += 1
            else:
                complete(session, bonus, session.status)
            assert session.service.paid() == paid
            assert session.json(*bonus)["paid_before"] == 3
    assert stopped > (len(states) if is_all else 2)


def actions_of(session):
    with Ledger.open(session.ledger) as book:
        return tuple((action.token, action.state) for action in book.actions())


@pytest.mark.parametrize("is_lost", [True, False])
def test_nothing_is_done_twice_with_a_lost_or_an_old_ledger(session, is_lost):
    commands, prepare = prepared(session)
    for arguments, paid in commands:
        if arguments[0] == "bonus":
            continue
        prepare(arguments)
        if arguments[0] != "draft":
            saved = copy_of(session.ledger)
        session.run(*arguments)
        restore(session, None if is_lost or arguments[0] == "draft" else saved)
        session.run(*arguments)
        check(session, arguments, paid)


def test_payments_that_the_ledger_does_not_know_stop_the_payment(session):
    study_id, service = session.publish(), session.service
    one, two = service.submit(study_id), service.submit(study_id)
    service.state["payments"] += [["bonus", one, 50], ["bonus", one, 75], ["bonus", two, 50]]
    before = service.paid()
    bonuses = session.bonuses(f"{one},0.50,a", f"{two},0.50,a", f"{two},1.00,b")
    message = session.run("bonus", bonuses, code=1)
    assert f"{one}: 0.50, 0.75" in message
    assert f"{two}: 0.50" in message
    assert f"{two}: 0.50" in session.run("bonus", bonuses, "--paid", one, code=1)
    assert service.paid() == before
    assert session.json("bonus", bonuses, "--unpaid", two)["paid"] == 2
    assert service.paid() == sorted([*before, ("bonus", two, 50), ("bonus", two, 100)])
    assert session.json("bonus", bonuses)["paid_before"] == 3
    assert "not both" in session.run("bonus", bonuses, "--paid", one, "--unpaid", one, code=2)
    assert "not handed in" in session.run("bonus", bonuses, "--paid", "f" * 24, code=2)


def is_left_undone(fault, call):
    """Return whether a command with this fault ends with exit code 1, because it must not repeat the call."""
    if call.endswith("pay/") or call == "POST studies/":
        return fault != "429"
    return call.startswith("POST studies/") and fault in ("500", "drop before")


def faults_of(call, number, is_all):
    """Return the faults to try at a call with this number; all at payments."""
    reads = call.startswith("GET") or "cost" in call
    one_of_them = [FAULTS[number % len(FAULTS)]]
    if is_all:
        return one_of_them if reads else FAULTS
    return [] if reads else FAULTS if call.endswith("pay/") else one_of_them


@pytest.mark.parametrize("is_all", first_in_ci([False, True]))
def test_command_with_a_fault_at_any_call_is_completed_once(session, monkeypatch, is_all):
    """Each fault at each call that changes something, and one of them at each call that reads; or fewer."""
    commands, prepare = prepared(session)
    service = session.service

    tried = Counter()
    for arguments, paid in commands:
        prepare(arguments)
        service.calls.clear()
        session.run(*arguments)
        for step, call in enumerate(list(service.calls), start=1):
            for fault in faults_of(call, tried.total(), is_all):
                prepare(arguments)
                service.calls.clear()
                monkeypatch.setattr(
                    prolific_api, "TIMEOUT_SECONDS", 1.0 if "hang" in fault else 20.0
                )
                service.choose = lambda number, n=step, fault=fault: fault if number == n else None
                assert session.status(*arguments) == int(is_left_undone(fault, call)), (fault, call)
                service.choose = lambda number: None
                complete(session, arguments, session.status)
                check(session, arguments, paid)
                tried[fault] += 1
    assert min(tried[fault] for fault in FAULTS) >= (10 if is_all else 2)
    assert 7.0 in session.waits  # as the stand-in asks for


@pytest.mark.parametrize("is_all", first_in_ci([False, True]))
def test_command_killed_at_any_step_is_completed_once(session, killable_process, is_all):
    """Killed after each call that changes something at Prolific, and after each commit of the ledger."""
    commands, prepare = prepared(session)
    for arguments, paid in commands:
        prepare(arguments)
        steps = session.killed(killable_process, *arguments)["steps"]
        assert sum(step.startswith("before ") for step in steps) >= 2
        changed = [kill for kill, step in enumerate(steps, start=1) if changes(step)]
        for kill in changed if is_all else first_of_each(steps):
            prepare(arguments)
            dead = session.killed(killable_process, *arguments, kill=kill)
            assert (dead["status"], dead["steps"]) == (-9, steps[:kill])
            complete(session, arguments, session.status)
            check(session, arguments, paid)


def test_a_bonus_that_is_not_listed_yet_is_never_paid_again(session):
    study_id = session.publish()
    one = session.service.submit(study_id)
    bonuses = session.bonuses(f"{one},0.50,a")
    service = session.service
    service.choose = lambda number: "drop after" if service.calls[-1].endswith("pay/") else None
    service.lists_payments = False
    assert "the result of a call is unknown" in session.run("bonus", bonuses, code=1)
    for _ in range(2):
        assert "does not list (yet)" in session.run("bonus", bonuses, code=1)
    assert session.json("status")["bonuses_unknown"] == [one]
    assert service.paid() == [("bonus", one, 50)]
    service.lists_payments = True
    assert session.json("bonus", bonuses)["paid_before"] == 1
    assert service.paid() == [("bonus", one, 50)]


def test_an_earlier_bonus_that_arrives_late_is_not_taken_for_a_later_one(session):
    study_id = session.publish()
    one = session.service.submit(study_id)
    service = session.service
    service.lists_payments = False
    session.run("bonus", session.bonuses(f"{one},0.50,a"))
    both = session.bonuses(f"{one},0.50,a", f"{one},0.50,b")
    service.choose = lambda number: "drop before" if service.calls[-1].endswith("pay/") else None
    session.run("bonus", both, code=1)
    service.lists_payments = True
    assert "does not list (yet)" in session.run("bonus", both, code=1)
    service.choose = lambda number: None
    assert session.json("bonus", both, "--unpaid", one)["paid"] == 1
    assert service.paid() == [("bonus", one, 50)] * 2


def test_an_unknown_bonus_can_be_declared_paid(session):
    study_id, service = session.publish(), session.service
    one = service.submit(study_id)
    bonuses = session.bonuses(f"{one},0.50,a")
    service.choose = lambda number: "drop after" if service.calls[-1].endswith("pay/") else None
    service.lists_payments = False
    session.run("bonus", bonuses, code=1)
    assert session.json("bonus", bonuses, "--paid", one)["paid_before"] == 1
    service.lists_payments = True
    assert session.json("bonus", bonuses)["paid_before"] == 1
    assert service.paid() == [("bonus", one, 50)]


def test_token_stays_out_of_ledger_and_log(session, monkeypatch):
    assert "[token]" not in session.run("draft", session.folder / "study.toml", "--verbose")
    assert TOKEN.encode() not in copy_of(session.ledger)
    monkeypatch.setenv("PROLIFIC_TOKEN", "an-invalid-token")
    output = session.run("status", "--verbose", code=1)
    assert "rejected the token" in output
    assert "an-invalid-token" not in output


def test_token_comes_from_the_environment_or_the_keyring(monkeypatch):
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    monkeypatch.setattr(prolific_api, "_keyring_token", lambda: "")
    with pytest.raises(ServiceError, match="no token for Prolific"):
        read_token()
    monkeypatch.undo()
    keyring = pytest.importorskip("keyring")
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    monkeypatch.setattr(keyring, "get_password", lambda *entry: f"{'/'.join(entry)}-token\n")
    assert read_token() == "giccs/prolific-token"
    monkeypatch.setenv("PROLIFIC_TOKEN", "first")
    assert read_token() == "first"
    monkeypatch.setenv("PROLIFIC_TOKEN", "a b")
    with pytest.raises(ServiceError, match="cannot have"):
        read_token()


def test_the_token_is_never_sent_unencrypted():
    assert resolve_prolific("https://api.prolific.com").url == "https://api.prolific.com"
    with pytest.raises(ValueError, match="with https"):
        resolve_prolific("http://api.prolific.com")


def test_other_commands_refuse_the_ledger(session):
    session.draft()
    result = CliRunner().invoke(main, ["collect", "--ledger", str(session.ledger)])
    assert result.exit_code == 2
    assert "giccs annotate prolific" in result.output


def test_a_list_that_misses_entries_is_refused(session):
    study_id = session.publish()
    for _ in range(4):
        session.service.submit(study_id)
    api = Prolific(resolve_prolific(session.url), TOKEN)
    assert len([*api.pages(f"studies/{study_id}/submissions/")]) == 4
    session.service.page = lambda rows, query: StandIn.page(session.service, rows, {"limit": 2})
    with pytest.raises(ServiceError, match="listed 2 of 4"):
        [*api.pages(f"studies/{study_id}/submissions/")]
    session.service.choose = lambda number: "500"
    with pytest.raises(UnknownResultError):
        api.call("POST", "studies/", {}, repeatable=False)
    api.close()
