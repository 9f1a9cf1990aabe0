"""A study with anchors at a running service: published, answered by simulated workers, collected."""

import csv
import json
import shutil
from collections import Counter

import pytest

from bws.absolute.design import plan_anchors
from bws.absolute.files import COLUMNS, read_anchors, write_plan
from bws.files import read_judgments, read_tuples
from mturk.answers import from_xml
from mturk.study.ledger import Ledger
from tests.mturk.study.test_collect_faults import EXTENT, kills

CONFIG = 'assignments = 3\napproval_rate_above = -1\ncountries = []\nreward = "0.30"\n'


class AnchoredStudy:
    """The small study of `files`, with a plan of anchors."""

    def __init__(self, running, files, folder, design):
        self.running, self.files, self.folder = running, files, folder
        self.plan, self.config = folder / "plan.csv", folder / "hits.toml"
        self.ledger = folder / "ledger.db"
        self.config.write_text(CONFIG)
        write_plan(plan_anchors(read_tuples(files.tuples), design), self.plan)

    def run(self, *arguments, code=0):
        from click.testing import CliRunner

        from mturk.cli import main

        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == code, (done.output, done.exception)
        self.stderr = done.stderr
        return done.stdout

    def publish(self, *more, code=0, ledger=None):
        given = *self.files.arguments, "--config", self.config, "--endpoint", self.running.url
        return self.run("publish", *given, "--ledger", ledger or self.ledger, *more, code=code)

    def simulate(self, workers=3, **behaviour):
        options = [word for name, value in behaviour.items() for word in (f"--{name}", value)]
        given = "--truth", self.files.dialogues, "--workers", workers
        self.run("simulate", *given, "--endpoint", self.running.url, *options)

    def collect(self, *more, code=0):
        """Collect; return the judgments and the anchors."""
        paths = self.folder / "judgments.csv", self.folder / "anchors.csv"
        given = "--ledger", self.ledger, "-o", paths[0], "--anchors", paths[1]
        self.said = self.run("collect", *given, *more, code=code)
        return [path.read_text() for path in paths if path.exists()]


@pytest.fixture
def make(running, files, tmp_path):
    pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")
    return lambda design="rating:2": AnchoredStudy(running, files, tmp_path, design)


def rows_of(text):
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("design", ["rating:2", "mark"])
def test_a_study_is_answered_and_collected(make, design):
    study = make(design)
    study.publish("--anchors", study.plan)
    study.simulate(noise=0)
    judgments, anchors = study.collect()
    kind = design.partition(":")[0]
    n_rows = 2 * 3 * (2 if kind == "rating" else 3)  # two dialogues, three people
    assert f"{n_rows} answers to anchors, 0 skipped" in study.said
    assert len(read_judgments(study.folder / "judgments.csv")) == 12
    parsed = read_anchors(study.folder / "anchors.csv")
    assert (parsed.kind, len(parsed)) == (kind, n_rows)
    assert anchors.splitlines()[0] == ",".join(COLUMNS)
    rows = rows_of(anchors)
    assert {row["annotator"] for row in rows} == {row["annotator"] for row in rows_of(judgments)}
    assert all(row["annotator"].startswith("w-") for row in rows)
    positions = Counter((row["group"], row["item"], row["position"]) for row in rows)
    assert set(positions.values()) == {1}  # each candidate once at each position: exact balance
    truth = {
        one["utterance_id"]: (one["intended"] - 1) / 4
        for line in study.files.dialogues.read_text(encoding="utf-8").splitlines()
        for one in json.loads(line)["candidates"]
    }
    for row in rows:
        expected = 100 * truth[row["item"]] if kind == "rating" else truth[row["item"]] > 0.5
        assert int(row["answer"]) == expected
    status = study.run("status", "--ledger", study.ledger, "--trials", 2)
    assert "anchors      6 of 6 answers" in status
    assert "100.0 % of 3 judgments for each of 4 tuples" in status


@pytest.mark.parametrize(
    ("behaviour", "expected"), [({"middle": 1}, {"50"}), ({"careless": 1}, None)], ids=str
)
def test_workers_of_other_kinds(make, behaviour, expected):
    study = make()
    study.publish("--anchors", study.plan)
    study.simulate(**behaviour)
    answers = {row["answer"] for row in rows_of(study.collect()[1])}
    assert answers == expected if expected else len(answers) > 5


def test_tuples_are_published_as_without_anchors(make, tmp_path):
    study = make()
    study.publish(ledger=tmp_path / "plain.db")
    with Ledger.open(tmp_path / "plain.db") as book:
        plain = [(hit.annotation, hit.token, book.question(hit.number)) for hit in book.hits()]
        assert book.anchors() == {}
    study.publish("--anchors", study.plan)
    with Ledger.open(study.ledger) as book:
        hits = [(hit.annotation, hit.token, book.question(hit.number)) for hit in book.hits()]
        assert len(book.anchors()) == 2
    assert hits[: len(plain)] == plain
    assert len(hits) == len(plain) + 1
    assert study.running.annotations()[:3] == [annotation for annotation, *_ in hits]


def test_anchors_are_added_to_a_published_study_once(make):
    study = make()
    study.publish()
    study.simulate()
    study.run("collect", "--ledger", study.ledger, "-o", "-", "--anchors", "a.csv", code=2)
    assert "has no anchors" in study.stderr
    for _ in range(2):
        study.publish("--anchors", study.plan)
        study.publish()
    assert len(study.running.annotations()) == 3
    write_plan(plan_anchors(read_tuples(study.files.tuples), "mark"), study.plan)
    study.publish("--anchors", study.plan, code=2)
    assert "contains other anchors" in study.stderr
    study.simulate()
    judgments, anchors = study.collect()
    assert len(rows_of(judgments)) == 12
    assert len(rows_of(anchors)) == 12


def test_skipped_answers_are_counted_and_invalid_ones_left_out(make):
    from mturk.service.rules.work import WorkerService

    study = make()
    study.publish("--anchors", study.plan)
    work = WorkerService(study.running.database, study.running.clock)
    (hit_id,) = (row[0] for row in study.running.rows("SELECT hit_id FROM hit WHERE number = 3"))
    skipped = {f"skip-{n}-anchor:d3": "yes" for n in (1, 2, 3)}
    rated = {f"rating-{n}-anchor:d5": str(n) for n in (1, 2, 3)}
    slots = {"slot-anchor:d3": "1", "slot-anchor:d5": "2"}
    wrong = {**slots, **rated, "slot-anchor:d3": "9"}
    for worker, fields in (("A1", {**slots, **skipped, **rated}), ("A2", wrong)):
        work.register(worker, country="DE")
        assignment = work.accept(worker, hit_id)
        work.submit(assignment.assignment_id, worker, list(fields.items()))
    _, anchors = study.collect()
    assert {row["group"] for row in rows_of(anchors)} == {"d5"}
    assert len(rows_of(anchors)) == 4
    assert "4 answers to anchors, 2 skipped" in study.said
    assert "1 answers to a tuple or anchor are missing or invalid" in study.stderr
    review = study.run("review", "--ledger", study.ledger)
    assert "slot is '9'; expected a number from 1 to 3" in review
    study.run("collect", "--ledger", study.ledger, "-o", study.folder / "judgments.csv")
    assert "3 answers to anchors are not written; expected --anchors FILE" in study.stderr
    top_up = json.loads(study.run("top-up", "--ledger", study.ledger, "--json", "--dry-run"))
    assert top_up["lacking"] == {"anchor:d3": 1}


def test_simulated_anchors_replace_only_themselves(make):
    study = make()
    study.publish("--anchors", study.plan)
    study.simulate()
    first = study.collect()
    assert study.collect() == first
    others = first[1].replace("\n", "\nd3,d3-1,w-1,rating,3,1,,ID\n", 1)
    (study.folder / "anchors.csv").write_text(others)
    study.collect(code=2)
    assert "answers of other assignments" in study.stderr
    assert (study.folder / "anchors.csv").read_text() == others


@EXTENT
def test_a_collection_killed_at_any_step_gives_the_same_files(make, killable_process, is_all):
    study = make()
    study.publish("--anchors", study.plan)
    study.simulate()
    fresh = study.folder / "fresh.db"
    shutil.copy(study.ledger, fresh)
    expected = study.collect()
    names = [study.folder / name for name in ("judgments.csv", "anchors.csv")]

    def collect(kill=0):
        words = "collect", "--ledger", study.ledger, "-o", names[0], "--anchors", names[1]
        return killable_process.run(*words, endpoint=study.running.url, kill=kill)

    def restart():
        for path in (*names, *study.folder.glob("ledger.db-*")):  # not the key of the pseudonyms
            path.unlink(missing_ok=True)
        shutil.copy(fresh, study.ledger)

    restart()
    steps = collect()["steps"]
    assert [path.read_text() for path in names] == expected
    assert len(steps) > 6
    for kill in kills(steps, is_all):
        restart()
        assert collect(kill)["status"] == -9
        assert collect()["status"] == 0
        assert [path.read_text() for path in names] == expected, steps[:kill]


def test_a_batch_file_with_anchors_is_read_as_judgments(make):
    study = make()
    study.publish("--anchors", study.plan)
    study.simulate()
    study.collect()
    batch = study.folder / "batch.csv"
    study.run("batch", "--ledger", study.ledger, "-o", batch)
    assert len(read_judgments(batch)) == 12


def test_rounds_get_anchors_after_the_last_round(make):
    study = make()
    lines = study.files.tuples.read_text().splitlines()
    rows = [f"{line},1,warmup,0" for line in lines[1:]]
    study.files.tuples.write_text("\n".join([f"{lines[0]},round,purpose,seed", *rows, ""]))
    study.publish("--anchors", study.plan, code=2)
    assert "publish without --anchors now" in " ".join(study.stderr.split())
    study.publish()
    study.publish("--anchors", study.plan)
    study.simulate()
    assert len(rows_of(study.collect()[1])) == 12
    assert "warmup" not in study.run("status", "--ledger", study.ledger, "--trials", 2)


def test_answers_state_the_slot(make):
    study = make()
    study.publish("--anchors", study.plan)
    study.simulate()
    rows = study.running.rows("SELECT answer FROM assignment WHERE status = 'Submitted'")
    slots = Counter(dict(from_xml(row[0])).get("slot-anchor:d3") for row in rows)
    assert [slots[slot] for slot in ("1", "2", "3")] == [1, 1, 1]
