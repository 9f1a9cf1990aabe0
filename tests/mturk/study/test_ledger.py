import json
import os
import sqlite3
import stat
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from bws.base.problems import InputError
from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk.kinds.tuples.page import Part
from mturk.study.ledger import Action, Assignment, Ledger
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings

ROOT = Path(__file__).parents[3]
HERE = "http://127.0.0.1:8765"
CANDIDATES = tuple(Candidate(f"u;{n}%", f"Text {n}") for n in "abc")
DIALOGUE = Dialogue("d1", "made", "", (Turn("user", "Hallo"), Turn("system", "Ja?")), CANDIDATES)


def plan(number, digest="x"):
    part = Part(f"t{number}", DIALOGUE, CANDIDATES)
    return HitPlan(
        number, (part,), f"<q n='{number}'/>", f"giccs:{digest}:0:{number}", f"{digest}-0-{number}"
    )


PLANS = [plan(1), plan(2), plan(3)]
SAID = Assignment("A1", "H1", "w-1", "Submitted", 1.5, 2.5, "<answer>ä🙂</answer>", 3.5)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture
def ledger(path):
    with Ledger.open(path, create=True) as book:
        book.start_study(HERE, Settings(), PLANS, 100.0)
        yield book


def test_planned_hits_are_stored_completely(ledger):
    study = ledger.study()
    assert (study.endpoint, study.settings, study.created) == (HERE, Settings(), 100.0)
    assert study.hit_type_id is None
    assert [(hit.number, hit.annotation, hit.token) for hit in ledger.hits()] == [
        (n, f"giccs:x:0:{n}", f"x-0-{n}") for n in (1, 2, 3)
    ]
    assert {(hit.state, hit.max_assignments, hit.hit_id) for hit in ledger.hits()} == {
        ("meant", 5, None)
    }
    assert ledger.question(2) == "<q n='2'/>"
    assert ledger.parts()[0].items == ("u;a%", "u;b%", "u;c%")
    assert [(part.number, part.tuple_id, part.group) for part in ledger.parts()] == [
        (n, f"t{n}", "d1") for n in (1, 2, 3)
    ]


def test_settings_round_trip(path):
    odd = Settings(
        reward=Decimal("1.05"), countries=("DE", "AT"), own_qualifications=(), pseudonyms=False,
        consent="Zeile 1\nZeile 2 „ü“",
    )  # fmt: skip
    with Ledger.open(path, create=True) as book:
        book.start_study(HERE, odd, PLANS, 0.0)
    with Ledger.open(path) as book:
        assert book.study().settings == odd


def test_only_owner_may_read_ledger(ledger, path):
    files = [path, *(f"{path}{end}" for end in ("-wal", "-shm"))]
    assert [stat.S_IMODE(os.stat(file).st_mode) for file in files] == [0o600] * 3


def test_commits_are_synchronous(ledger):
    settings = [
        ledger.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    ]
    assert settings == ["wal", 2, 1]


def test_hit_state_transitions(ledger):
    ledger.mark_sent([1], 5.0)
    ledger.mark_sent([1], 9.0)
    assert (ledger.hits()[0].state, ledger.hits()[0].first_sent) == ("sent", 5.0)
    ledger.mark_created(1, "H1", 7, 10.0)
    hit = ledger.hits()[0]
    assert (hit.state, hit.hit_id, hit.max_assignments, hit.created_at) == (
        "created",
        "H1",
        7,
        10.0,
    )
    ledger.set_max_assignments(1, 9)
    ledger.mark_closed(1)
    assert (ledger.hits()[0].state, ledger.hits()[0].max_assignments) == ("closed", 9)
    ledger.mark_reopened(1)
    assert ledger.hits()[0].state == "created"


def test_invalid_state_transitions_are_refused(ledger):
    ledger.mark_created(1, "H1", 5, 1.0)
    ledger.mark_sent([1, 2], 2.0)
    assert [hit.state for hit in ledger.hits()] == ["created", "sent", "meant"]
    with pytest.raises(LookupError):
        ledger.mark_created(1, "H2", 5, 2.0)
    with pytest.raises(LookupError):
        ledger.mark_closed(2)
    with pytest.raises(sqlite3.IntegrityError):
        ledger.mark_created(2, "H1", 5, 2.0)
    assert [hit.hit_id for hit in ledger.hits()] == ["H1", None, None]


def test_repeated_study_may_change_changeable_settings(ledger):
    ledger.mark_sent([1], 1.0)
    later = Settings(spending_limit=Decimal("50.00"), lifetime=3600)
    ledger.start_study(HERE, later, PLANS, 200.0)
    assert ledger.study().settings == later
    assert ledger.study().created == 100.0
    assert ledger.hits()[0].state == "sent"


def test_stored_question_is_not_replaced(ledger):
    ledger.mark_sent([1], 1.0)
    ledger.start_study(HERE, Settings(), [replace(p, question="<new/>") for p in PLANS], 200.0)
    assert ledger.question(3) == "<q n='3'/>"


def test_other_study_is_refused_with_all_differences(ledger, path):
    ledger.mark_sent([1], 1.0)
    other = Settings(reward=Decimal("0.99"), pseudonyms=False)
    with pytest.raises(InputError) as refused:
        ledger.start_study(
            "https://else.where", other, [plan(1), plan(2, "y"), plan(3), plan(4)], 2.0
        )
    message = [str(problem) for problem in refused.value.problems]
    assert len(message) == 4
    assert message[0].startswith(f"{path}: belongs to the service {HERE}, not https://else.where; ")
    assert "created with reward 0.30, not 0.99" in message[1]
    assert "created with pseudonyms True, not False" in message[2]
    assert "2 of 4 HITs differ from those in the ledger (2, 4)" in message[3]
    assert ledger.study().settings == Settings()
    assert len(ledger.hits()) == 3


def test_unsent_study_may_change(ledger):
    other = Settings(reward=Decimal("0.99"))
    ledger.start_study(HERE, other, [plan(1, "y")], 200.0)
    assert [hit.annotation for hit in ledger.hits()] == ["giccs:y:0:1"]
    assert [part.number for part in ledger.parts()] == [1]
    assert ledger.study().settings == other
    ledger.set_hit_type("T1")
    with pytest.raises(InputError):
        ledger.start_study(HERE, Settings(), PLANS, 300.0)


def test_added_hits_are_numbered_and_stored_once(ledger):
    more = [plan(1, "x:1"), plan(2, "x:1")]
    assert ledger.add_hits(more, 2) == 2
    assert ledger.add_hits([*more, plan(3, "x:1")], 2) == 1
    added = ledger.hits()[3:]
    assert [(h.number, h.annotation, h.max_assignments) for h in added] == [
        (4, "giccs:x:1:0:1", 2), (5, "giccs:x:1:0:2", 2), (6, "giccs:x:1:0:3", 2),
    ]  # fmt: skip
    ledger.mark_sent([4], 1.0)
    ledger.start_study(HERE, Settings(), PLANS, 200.0)  # publishing the study again leaves them


def test_only_review_changes_stored_assignments(ledger):
    ledger.mark_created(1, "H1", 5, 1.0)
    assert ledger.store_assignments([SAID, replace(SAID, assignment_id="A2", submit_time=1.0)]) == (
        2,
        0,
    )
    assert ledger.store_assignments([SAID]) == (0, 0)
    approved = replace(
        SAID, status="Approved", approval_time=9.0, feedback="danke",
        answer_xml="<other/>", worker="someone", collected_at=99.0,
    )  # fmt: skip
    assert ledger.store_assignments([approved]) == (0, 1)
    kept = ledger.assignments()
    assert [a.assignment_id for a in kept] == ["A2", "A1"]  # by the time of submission
    assert kept[1] == replace(SAID, status="Approved", approval_time=9.0, feedback="danke")


def test_assignment_of_unknown_hit_is_refused(ledger):
    ledger.mark_created(1, "H1", 5, 1.0)
    with pytest.raises(sqlite3.IntegrityError):
        ledger.store_assignments([SAID, replace(SAID, assignment_id="A2", hit_id="H9")])
    assert ledger.assignments() == ()


def test_actions_are_planned_once_and_have_states(ledger):
    bonus = Action("b1", "bonus", "A1", "0.50", "Danke")
    assert ledger.plan_actions([bonus, Action("a1", "approve", "A1")], 5.0) == 2
    ledger.set_action_state("b1", "sent", 6.0)
    assert ledger.plan_actions([replace(bonus, amount="9.99")], 7.0) == 0
    assert ledger.actions("sent") == (replace(bonus, state="sent", at=6.0),)
    assert [action.token for action in ledger.actions()] == ["a1", "b1"]
    with pytest.raises(LookupError):
        ledger.set_action_state("b9", "done", 7.0)


def test_transaction_is_atomic(ledger):
    def half():
        with ledger.transaction() as connection:
            connection.execute("DELETE FROM part")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert len(ledger.parts()) == 3


def test_files_that_are_not_ledgers_are_refused(tmp_path, path):
    with pytest.raises(
        InputError, match="ledger not found; expected a file created by giccs annotate publish"
    ):
        Ledger.open(path)
    text = tmp_path / "text.db"
    text.write_text("a text that is long enough not to be an empty database " * 20)
    with pytest.raises(InputError, match="is not a readable ledger"):
        Ledger.open(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(InputError, match="is a database, but not a ledger"):
        Ledger.open(other, create=True)
    Ledger.open(path, create=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="version 99; expected version 1"):
        Ledger.open(path)


def test_empty_ledger_is_reported(path):
    with (
        Ledger.open(path, create=True) as book,
        pytest.raises(InputError, match="contains no study"),
    ):
        book.study()


@pytest.fixture
def other_process(commands):
    """Return a function that runs code in another process."""

    def run(code, path):
        return commands.run("-c", f"from mturk.study.ledger import Ledger\n{code}", path)

    return run


HOLD_LOCK = """
import sys
with Ledger.open(sys.argv[1]) as book, book.exclusive_lock():
    print("in")
"""


def test_second_process_is_refused_by_lock(ledger, path, other_process):
    with ledger.exclusive_lock():
        done = other_process(HOLD_LOCK, path)
        assert (
            "another giccs annotate process uses this ledger; wait until it has ended"
            in done.stderr
        )
        assert not done.stdout
    assert other_process(HOLD_LOCK, path).stdout == "in\n"


def test_reading_and_collecting_are_possible_during_lock(ledger, path, other_process):
    ledger.mark_created(1, "H1", 5, 1.0)
    code = """
import sys, json
from mturk.study.ledger import Assignment
with Ledger.open(sys.argv[1]) as book:
    said = Assignment("A1", "H1", "w", "Submitted", 1.0, 2.0, "<a/>", 3.0)
    print(json.dumps([len(book.hits()), book.store_assignments([said])]))
"""
    with ledger.exclusive_lock():
        done = other_process(code, path)
    assert json.loads(done.stdout) == [3, [1, 0]]
    assert len(ledger.assignments()) == 1


def test_killed_process_releases_lock(ledger, path, other_process):
    code = """
import os, signal, sys
book = Ledger.open(sys.argv[1])
with book.exclusive_lock():
    book.connection.execute("BEGIN IMMEDIATE")
    book.connection.execute("DELETE FROM part")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert other_process(code, path).returncode == -9
    with ledger.exclusive_lock():
        ledger.mark_sent([1], 1.0)
    assert len(ledger.parts()) == 3


def test_two_processes_can_create_same_ledger(path, commands):
    code = """
import sys
with Ledger.open(sys.argv[1], create=True) as book:
    print(len(book.hits()))
"""
    running = [
        commands.start("-c", f"from mturk.study.ledger import Ledger\n{code}", path)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=300)[0] for process in running] == ["0\n"] * 3


def filled(path):
    with Ledger.open(path, create=True) as book:
        book.start_study(HERE, Settings(), PLANS, 100.0)
        book.mark_created(1, "H1", 5, 1.0)
        book.store_assignments([replace(SAID, assignment_id=f"A{number}") for number in range(200)])


def test_inconsistent_ledger_is_refused(path):
    """Without an integrity check, rows would be missing without notice."""
    filled(path)
    content = bytearray(Path(path).read_bytes())
    refused = []
    for page in range(4096, len(content), 4096):
        damaged = content.copy()
        damaged[page + 4] ^= 1  # how many rows the page says it has
        Path(path).write_bytes(damaged)
        try:
            with Ledger.open(path) as book:
                assert (len(book.hits()), len(book.assignments())) == (3, 200)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert all(message.startswith(path) for message in refused)


def test_assignment_without_hit_is_damage(path):
    filled(path)
    with sqlite3.connect(path) as connection:  # does not watch what refers to what
        connection.execute("UPDATE assignment SET hit_id = 'H7' WHERE assignment_id = 'A7'")
    connection.close()
    with pytest.raises(InputError, match=r"damaged .a row of assignment has no hit"):
        Ledger.open(path)


def test_unreadable_settings_are_damage(path):
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE study SET value = substr(value, 9) WHERE key = 'settings'")
        connection.execute("UPDATE part SET items = substr(items, 2)")
    connection.close()
    with Ledger.open(path) as book:
        with pytest.raises(InputError, match=r"damaged .its settings"):
            book.study()
        with pytest.raises(InputError, match=r"damaged .its tuples"):
            book.parts()


def test_full_disk_is_os_error_and_nothing_is_written(path):
    """SQLite's limit on the file size simulates a full disk."""
    filled(path)

    def keep():
        with Ledger.open(path) as book:
            pages = book.connection.execute("PRAGMA page_count").fetchone()[0]
            book.connection.execute(f"PRAGMA max_page_count = {pages}")
            book.store_assignments(
                [replace(SAID, assignment_id=f"B{number}") for number in range(500)]
            )

    with pytest.raises(OSError, match="No space left on device") as full:
        keep()
    assert full.value.filename == path
    with Ledger.open(path) as book:
        assert len(book.assignments()) == 200


def test_ledger_is_usable_after_full_disk(path):
    filled(path)
    with Ledger.open(path) as book:
        pages = book.connection.execute("PRAGMA page_count").fetchone()[0]
        book.connection.execute(f"PRAGMA max_page_count = {pages}")
        more = [replace(SAID, assignment_id=f"B{number}") for number in range(500)]
        with pytest.raises(sqlite3.OperationalError, match="full"):
            book.store_assignments(more)
        book.connection.execute(f"PRAGMA max_page_count = {10 * pages}")
        assert book.store_assignments(more) == (500, 0)
