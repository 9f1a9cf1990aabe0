"""Adaptive studies through the service, with simulated workers: rounds, their end, kills, repetition."""

import csv
import json
import shutil
from collections import Counter
from itertools import cycle

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from bws.adaptive import fit, next_round
from bws.design import fresh_rounds, make_tuples
from bws.files import read_judgments, read_tuples, write_tuples
from mturk.cli import main
from mturk.kinds import Behaviour
from mturk.kinds.texts import read_built_in_file
from mturk.study import simulated_workers
from mturk.study.ledger import Ledger
from mturk.study.rounds import study_tuples
from mturk.study.simulated_workers import simulate_workers
from mturk.study.valid_answers import read_valid_answers
from tests.mturk.study.killable_process import first_of_each
from tests.nightly import first_in_ci

N_ITEMS = 16
NEW_WORDS = ["worda", "wordb", "wordc", "wordd"]
WORKERS = [f"ASIMULATED{number}" for number in range(1, 9)]


class EnoughError(Exception):
    """Ends a simulation early."""


class AdaptiveStudy:
    """A study of words in rounds; `truth` are the simulated true scores."""

    def __init__(self, running, folder, settings="", n_items=N_ITEMS):
        self.running, self.folder, self.ledger = running, folder, folder / "ledger.db"
        rng = np.random.default_rng(3)
        self.truth = {f"word{n:02d}": float(v) for n, v in enumerate(rng.uniform(-1, 1, n_items))}
        write_tuples(fresh_rounds(list(self.truth), 4, 1, factor=1), folder / "round1.csv")
        (folder / "texts.toml").write_text(
            read_built_in_file("mturk.kinds.items", "en", "sentiment"), "utf-8"
        )
        (folder / "hits.toml").write_text(
            'kind = "items"\ntexts = "texts.toml"\nitem_language = "en"\napproval_rate_above = -1\n'
            f"assignments = 1\ntuples_per_hit = 4\ncountries = []\n{settings}",
            "utf-8",
        )

    def run(self, command, *arguments, code=0):
        words = [command, *arguments, "--ledger", self.ledger, "--json"]
        result = CliRunner().invoke(main, list(map(str, words)))
        assert result.exit_code == code, (result.output, result.exception)
        self.stderr = result.stderr
        return json.loads(result.stdout) if code == 0 else None

    def publish(self):
        config = ["--config", self.folder / "hits.toml", "--endpoint", self.running.url]
        return self.run("publish", self.folder / "round1.csv", *config)

    def next(self, *arguments, code=0):
        output = ["-o", self.folder / "round.csv"]
        return self.run("next", *output, *arguments, code=code)

    def work(self, workers=WORKERS, on_submission=lambda _: None, **behaviour):
        truth = {("", item): score for item, score in self.truth.items()}
        return simulate_workers(
            self.running.url, workers, truth, Behaviour(**{"noise": 0.2} | behaviour),
            on_submission=on_submission,
        )  # fmt: skip

    def work_on(self, n_hits, worker=WORKERS[0], **behaviour):
        """Let one worker do some of the HITs; return whether there were as many."""

        def count(results):
            if results.counts["submitted"] == n_hits:
                raise EnoughError

        try:
            self.work([worker], count, **behaviour)
        except EnoughError:
            return True
        return False

    def work_in_turns(self, **behaviour):
        """Let the workers do all HITs, one each in turn, so that each run has the same answers."""
        for worker in cycle(WORKERS):
            if not self.work_on(1, worker, **behaviour):
                return

    def collect(self):
        self.run("collect", "-o", self.folder / "judgments.csv")
        return self.folder / "judgments.csv"


@pytest.fixture
def study(running, tmp_path):
    return AdaptiveStudy(running, tmp_path)


def test_round_is_published_once_and_recorded(study):
    study.publish()
    study.work()
    document = study.next("-n", "10")
    published = document["published"]
    assert (published["round"], published["tuples"], published["audit"]) == (2, 10, 2)
    assert (published["hits"], published["cost"]) == (3, "1.08")  # 3 x (0.30 + 0.06)
    assert not document["stop"]
    tuples = read_tuples(study.folder / "round.csv")
    assert set(tuples.columns["round"]) == {"2"}
    with Ledger.open(study.ledger) as book:
        rounds = Counter(values[:2] for values in book.rounds().values())
        assert rounds == {("1", "warmup"): 16, ("2", "adaptive"): 8, ("2", "audit"): 2}
        assert Counter(study.running.annotations()) == Counter(h.annotation for h in book.hits())
    study.next(code=2)
    assert "round 2 has judgments of 0 of 10 tuples" in study.stderr
    assert len(study.running.annotations()) == 4 + 3


def test_judgments_carry_round_and_purpose(study):
    study.publish()
    study.work()
    study.next("-n", "10")
    study.work()
    with study.collect().open(encoding="utf-8") as file:
        rows = Counter((row["round"], row["purpose"]) for row in csv.DictReader(file))
    assert rows == {("1", "warmup"): 16, ("2", "adaptive"): 8, ("2", "audit"): 2}
    with pytest.raises(ValueError, match="adaptive"):
        read_judgments(study.folder / "judgments.csv").check_not_adaptive("counting")


def test_status_has_the_gates_instead_of_reliability(study):
    study.publish()
    study.work()
    before = study.run("status")
    assert before["stopping"] is None
    assert before["reliability"]["pearson"]["mean"] > 0
    study.next("-n", "10")
    study.work()
    status = study.run("status")
    assert status["reliability"] is None
    assert "chosen from earlier judgments" in status["reasons"]["reliability"]
    gates = {gate["name"]: gate["passed"] for gate in status["stopping"]["gates"]}
    assert gates.keys() == {"posterior", "audit", "coverage"}
    text = CliRunner().invoke(main, ["status", "--ledger", str(study.ledger)]).stdout
    assert "End of the study" in text
    assert "continue: not yet passed" in text


def test_round_is_repeated_from_ledger_and_seed(study):
    """Each round follows from the judgments collected before it, in spite of later ones."""
    study.publish()
    study.work()
    study.next("-n", "10", "--seed", "5")
    with Ledger.open(study.ledger) as book:
        tuples, before = study_tuples(book), read_valid_answers(book).judgments
    study.work()
    study.collect()
    first = tuples.ids[tuples.columns["round"] == "1"]
    with Ledger.open(study.ledger) as book:
        now = read_valid_answers(book).judgments
    kept = now.select(np.isin(now.tuples.ids[now.tuple_of], first))
    published = read_tuples(study.folder / "round.csv")
    for judgments in (before, kept):
        again = next_round(judgments, read_tuples(study.folder / "round1.csv"), 10, seed=5)
        assert list(again.rows()) == list(published.rows())
        assert (again.columns["purpose"] == published.columns["purpose"]).all()


def test_late_answers_are_data_and_every_round_is_reproduced(study):
    """Answers of round 1 arrive after round 2 was published; new items enter in round 3."""
    study.publish()
    assert study.work_on(3)
    first = study.next("-n", "8", "--seed", "4")
    assert first["rounds"][0]["judgments"] == first["evidence"]["judgments"] == 12
    study.work()
    more = study.folder / "more.txt"
    more.write_text("".join(f"{word}\n" for word in ["word00", *NEW_WORDS]), "utf-8")
    second = study.next("--new-items", more, "--seed", "5")
    assert [one["judgments"] for one in second["rounds"]] == [16, 8]
    assert second["evidence"]["judgments"] == 24
    assert (second["published"]["round"], second["published"]["audit"]) == (3, 0)
    study.truth |= dict.fromkeys(NEW_WORDS, 0.9)
    study.work()
    study.next("-n", "9", "--seed", "6")
    study.work()
    study.collect()
    verified = study.run("next", "--verify")["rounds"]
    assert verified == [{"number": n, "equal": True, "reason": ""} for n in (2, 3, 4)]
    with Ledger.open(study.ledger) as book:
        tuples, judgments = study_tuples(book), read_valid_answers(book).judgments
        late = min(book.assignments(), key=lambda one: one.collected_at)
        book.connection.execute(
            "UPDATE assignment SET status = 'Rejected' WHERE assignment_id = ?",
            [late.assignment_id],
        )
        choice = json.loads(book.get_note("round 3"))
        book.set_note("round 3", json.dumps(choice | {"seed": 7}))
    fitted = fit(tuples, judgments)
    assert fitted.appearances.min() >= 4
    utility = dict(zip(tuples.items.tolist(), fitted.utility.tolist(), strict=True))
    assert min(utility[word] for word in NEW_WORDS) > np.median(fitted.utility)
    study.run("next", "--verify", code=1)
    text = CliRunner().invoke(main, ["next", "--verify", "--ledger", str(study.ledger)]).stdout
    changed = "its judgments have changed: answers were rejected, withdrawn or deleted since"
    assert text.splitlines() == [
        f"round 2: not verified: {changed}",
        "round 3: differs from the published tuples",
        f"round 4: not verified: {changed}",
    ]


def test_new_items_may_be_in_the_table_of_texts(study):
    items = study.folder / "items.csv"
    items.write_text("item,text\n" + "".join(f"{word},A {word}\n" for word in study.truth), "utf-8")
    config = ["--config", study.folder / "hits.toml", "--endpoint", study.running.url]
    study.run("publish", study.folder / "round1.csv", "--items", items, *config)
    study.work()
    with items.open("a", encoding="utf-8") as file:
        file.writelines(f"{word},A {word}\n" for word in NEW_WORDS)
    study.next("--items", items, "--new-items", items)
    assert "no further round" not in study.stderr  # said of first rounds only
    assert set(NEW_WORDS) < set(read_tuples(study.folder / "round.csv").items)


def test_new_items_need_a_file_with_new_ones(study):
    study.publish()
    study.work()
    (study.folder / "old.txt").write_text("word00\nword01\n", "utf-8")
    study.next("--new-items", study.folder / "old.txt", code=2)
    assert "all items are in earlier rounds; expected new ones" in study.stderr
    study.next("--new-items", study.folder / "old.txt", "-n", "8", code=2)
    assert "--new-items cannot be combined with -n" in study.stderr
    assert len(study.running.annotations()) == 4


def test_time_and_pay_are_those_of_each_round(study, monkeypatch):
    """30 s per HIT of four tuples in round 1, 60 s in round 2, for $0.30 per HIT."""
    answer = simulated_workers.simulate_answer

    def work(seconds):
        monkeypatch.setattr(
            simulated_workers, "simulate_answer", lambda *words: answer(*words[:-1], seconds)
        )
        study.work()

    study.publish()
    work(30.0)
    study.next("-n", "8")
    work(60.0)
    status = study.run("status", "--target", "0.5")
    figures = [
        {name: one[name] for name in ("median_seconds", "hourly_usd", "cost")}
        for one in status["rounds"]
    ]
    assert figures == [
        {
            "median_seconds": 7.5,
            "hourly_usd": "36.00",
            "cost": "1.44",
        },  # 120 HITs of $0.30 per hour
        {"median_seconds": 15.0, "hourly_usd": "18.00", "cost": "0.72"},
    ]
    assert status["stopping"]["target"] == 0.5
    text = CliRunner().invoke(main, ["status", "--ledger", str(study.ledger)]).stdout
    assert "seconds per tuple" in text
    assert "36.00" in text


def test_gates_look_at_items_without_answers(study):
    """Status, like next, counts items whose tuples nobody has judged yet."""
    study.publish()
    study.work()
    study.next("-n", "10")
    study.work()
    (study.folder / "more.txt").write_text("\n".join(NEW_WORDS), "utf-8")
    study.next("--new-items", study.folder / "more.txt")
    gates = {gate["name"]: gate for gate in study.run("status")["stopping"]["gates"]}
    assert not gates["coverage"]["passed"]
    assert gates["coverage"]["figure"] == 0


def test_groups_of_five_are_refused_with_the_remedy(running, tmp_path):
    study = AdaptiveStudy(running, tmp_path)
    groups = [f"d{n // 5}" for n in range(20)]
    design = make_tuples([f"c{n}" for n in range(20)], 3, groups=groups, count=10)
    write_tuples(design, tmp_path / "round1.csv")
    study.truth = {f"c{n}": n / 20 for n in range(20)}
    study.publish()
    truth = {(group, f"c{n}"): n / 20 for n, group in enumerate(groups)}
    simulate_workers(running.url, WORKERS, truth, Behaviour(noise=0.2))
    study.next(code=2)
    assert "adaptive rounds gain nothing here: 5 items have only 10 possible tuples" in study.stderr
    assert "choose the number of annotators" in study.stderr
    assert len(running.annotations()) == 10


def test_dry_run_publishes_nothing(study):
    study.publish()
    study.work()
    assert study.next("--dry-run")["published"]["done"] is False
    assert len(study.running.annotations()) == 4
    with Ledger.open(study.ledger) as book:
        assert book.rounds().keys() == {part.tuple_id for part in book.parts()}


def test_dry_run_shows_the_notes_on_the_plan(study):
    study.publish()
    study.work()
    study.next("--dry-run", "-n", "9")
    assert "note: HIT 3 has 1 of 4 tuples" in study.stderr


def test_round_without_judgments_is_refused(study):
    study.publish()
    study.next(code=2)
    assert "contains no judgments yet" in study.stderr


def test_spending_limit_covers_all_rounds(running, tmp_path):
    study = AdaptiveStudy(running, tmp_path, settings='spending_limit = "2.00"\n')
    study.publish()  # 1.44
    study.work()
    study.next(code=2)
    assert "the study with this round costs $2.16 including fees" in study.stderr
    assert len(running.annotations()) == 4


def copy_of(study, number):
    """Return a copy of the ledger with the key of its pseudonyms."""
    for suffix in (".key", ""):
        copy = shutil.copy(f"{study.ledger}{suffix}", study.folder / f"{number}.db{suffix}")
    return copy


@pytest.mark.parametrize("is_all", first_in_ci([False, True]))
def test_round_killed_at_any_step_is_published_once(study, killable_process, is_all):
    study.publish()
    study.work()
    study.collect()

    def run(ledger, seed, kill=0):
        words = [
            "next",
            "-n",
            8,
            "--seed",
            seed,
            "--ledger",
            ledger,
            "-o",
            study.folder / "killed.csv",
        ]
        return killable_process.run(*words, endpoint=study.running.url, kill=kill)

    copy = copy_of(study, 0)
    whole = run(copy, 0)
    assert whole["status"] == 0
    assert whole["steps"].count("before CreateHITWithHITType") == 2
    for kill in range(1, len(whole["steps"]) + 1) if is_all else first_of_each(whole["steps"]):
        copy = copy_of(study, kill)
        assert run(copy, kill, kill)["status"] == -9, whole["steps"][:kill]
        again = run(copy, kill)["status"]
        assert again == 0 or kill > len(whole["steps"]) - 2, whole["steps"][:kill]
        assert run(copy, kill)["status"] == 2
        existing = Counter(study.running.annotations())
        with Ledger.open(copy) as book:
            rounds = Counter(values[0] for values in book.rounds().values())
            assert rounds == {"1": 16, "2": 8}, whole["steps"][:kill]
            assert [existing[hit.annotation] for hit in book.hits()] == [1] * 6
            assert all(hit.hit_id for hit in book.hits())


@pytest.mark.parametrize(
    "behaviour", first_in_ci([{"noise": 0.3}, {"disagreement": 0.25}, {"careless": 0.1}]), ids=str
)
def test_study_stops_and_scores_are_right(study, behaviour):
    study.publish()
    for _ in range(40):
        study.work_in_turns(seed=1, **behaviour)  # with others, one study in twenty ends below 0.9
        document = study.next("-n", "24", "--target", "0.9")
        if document["stop"]:
            break
    assert document["stop"]
    assert document["published"] is None
    assert len(document["rounds"]) > 1
    assert all(gate["passed"] for gate in document["evidence"]["gates"])
    with Ledger.open(study.ledger) as book:
        tuples, judgments = study_tuples(book), read_valid_answers(book).judgments
    fitted = fit(tuples, judgments)
    scores = fitted.scores_of(fitted.utility[None])[0]
    correlation = np.corrcoef(scores, [study.truth[item] for item in tuples.items])[0, 1]
    assert correlation > 0.895
