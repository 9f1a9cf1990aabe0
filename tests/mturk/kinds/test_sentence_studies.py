"""Studies of sentence pairs end to end, by the commands at a running service."""

import csv
import json
from collections import Counter

import pytest
from click.testing import CliRunner

from giccs.csts.cli import main as csts
from giccs.csts.data import pairs, read_csts


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_pairs_to_data_set_end_to_end(study, pairs_csv):
    study.publish("conditions", pairs_csv, pairs_per_hit=2)
    study.simulate("--workers", "2", "--return-rate", "0.2")
    collected = study.collect("conditions.csv")
    written = rows(collected)
    assert list(written[0]) == [
        "uid", "pair_id", "sentence1", "sentence2", "condition", "intended", "remark", "annotator",
        "assignment_id", "seconds", "comment",
    ]  # fmt: skip
    assert [row["intended"] for row in written] == ["high", "low"] * 3
    assert len({row["uid"] for row in written}) == 6
    assert {(row["sentence1"], row["sentence2"]) for row in written} == {
        (row["sentence1"], row["sentence2"]) for row in rows(pairs_csv)
    }
    assert {row["comment"] for row in written} == {"simulated"}
    study.run("review", "--ledger", study.ledger, "--approve-submitted")
    assert rows(study.collect("again.csv")) == written

    study.ledger = str(study.folder / "verification.db")
    study.publish("verification", collected, pairs_per_hit=4)
    study.simulate("--workers", "3", "--truth", collected, "--noise", "0.2")
    judged = study.collect("verification.csv")
    answers = rows(judged)
    assert Counter(row["uid"] for row in answers) == dict.fromkeys(
        [row["uid"] for row in written], 3
    )
    assert {row["applies"] for row in answers} == {"yes"}

    output = str(study.folder / "csts_train.csv")
    done = CliRunner().invoke(csts, ["verified", judged, "-o", output, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["triplets"], document["answers"], document["instances"]) == (6, 18, 6)
    assert document["kappa"]["label"]["n"] == 6
    result = read_csts(output)
    assert not result.warnings
    assert len(pairs(result)) == 3
    true = {row["uid"]: row["intended"] for row in written}
    assert [true[instance.uid] for instance in result.instances] == ["high", "low"] * 3
    assert {instance.uid: instance.label >= 3 for instance in result.instances} == {
        uid: intended == "high" for uid, intended in true.items()
    }


def test_output_uses_terms_of_kind(study, triplets_csv):
    study.publish("verification", triplets_csv, assignments=2, pairs_per_hit=4)
    study.simulate("--workers", "1", "--truth", triplets_csv)
    said = study.run("status", "--ledger", study.ledger)
    assert "50.0 % of 2 answers for each of 4 triplets" in said
    assert "(agreement of labels: giccs csts verified)" in said
    assert "4 answers by 1 annotators" in study.run(
        "collect", "--ledger", study.ledger, "-o", study.folder / "v.csv"
    )
    assert "no answers are missing; open assignments are counted" in study.run(
        "top-up", "--ledger", study.ledger
    )
    batch = study.folder / "batch.csv"
    study.run("batch", "--ledger", study.ledger, "-o", batch)
    [row] = rows(batch)
    told = {row[f"Input.{n}.tuple_id"]: row[f"Answer.{n}.label"] for n in range(1, 5)}
    assert set(told) == {"u1", "u2", "u3", "u4"}
    assert set(told.values()) <= set("12345")
    assert {row[f"Input.{n}.item3"] for n in range(1, 5)} >= {"the colour", "what <i>moves</i> it"}
    study.run("close", "--ledger", study.ledger)
    lacking = study.run("top-up", "--ledger", study.ledger, "--dry-run")
    assert lacking.startswith("4 answers of 4 triplets are missing")


def test_republication_and_other_kind(study, pairs_csv, triplets_csv):
    assert "1 HITs" in study.publish("conditions", pairs_csv)
    before = study.running.annotations()
    assert "1 published before" in study.publish("conditions", pairs_csv)
    assert study.running.annotations() == before
    config = study.config("verification")
    given = triplets_csv, "--config", config, "--endpoint", study.url, "--ledger", study.ledger
    study.run("publish", *given, code=2)
    assert "was created with kind 'conditions', not 'verification'" in study.stderr


def test_worker_without_valid_answers_is_excluded(study, triplets_csv):
    study.publish("verification", triplets_csv, assignments=1, pairs_per_hit=4)
    from mturk.service.rules.work import WorkerService

    work = WorkerService(study.running.database, study.running.clock)
    work.register("AANNA", country="DE")
    [hit_id] = [row[0] for row in study.running.rows("SELECT hit_id FROM hit")]
    taken = work.accept("AANNA", hit_id)
    fields = [("label-u1", "5"), ("label-u2", "9"), ("label-u3", "2"), ("not-applicable-u3", "yes")]
    work.submit(taken.assignment_id, "AANNA", [*fields, ("not-applicable-u4", "yes")])
    path = str(study.folder / "v.csv")
    document = json.loads(study.run("collect", "--ledger", study.ledger, "-o", path, "--json"))
    assert (document["answers"], document["left_out"]) == (2, {"invalid": 2})
    assert {(row["uid"], row["label"], row["applies"]) for row in rows(path)} == {
        ("u1", "5", "yes"),
        ("u4", "", "no"),
    }


def test_review_contains_remarks(study, pairs_csv):
    study.publish("conditions", pairs_csv)
    truth = study.file(
        "truth.csv",
        "sentence1,sentence2,condition,label\n"
        "Two children dig a moat.,Two old men play chess.,two people,5\n"
        "Two children dig a moat.,Two old men play chess.,the age in the sentence,1\n",
    )
    study.simulate("--workers", "1", "--truth", truth)
    sheet = study.folder / "sheet.csv"
    study.run("review", "--ledger", study.ledger, "-o", sheet)
    [row] = rows(sheet)
    assert "'two people': 'two' may be a value of the condition" in row["faults"]
    assert (
        "'the age in the sentence': 'sentence' refers to the sentences themselves" in row["faults"]
    )
    remarks = [row["remark"] for row in rows(study.collect("c.csv")) if row["remark"]]
    assert len(remarks) == 2


@pytest.mark.parametrize("kind", ["tuples", "conditions", "relabel", "verification"])
def test_default_settings_file_of_each_kind_is_valid(study, kind):
    from mturk.study.settings_file import default_settings, read_settings

    text = study.run("estimate", "--default-config", kind)
    settings = read_settings(study.file("own.toml", text), "en")
    assert settings == default_settings(kind, "en")
    assert settings.hourly_wage() >= settings.minimum_wage
    assert max(map(len, (line for line in text.splitlines() if line.startswith("#")))) <= 100
    names = {line.partition(" = ")[0] for line in text.splitlines()}
    assert ("pairs_per_hit" in names) == (kind != "tuples") != ("dialogues_per_hit" in names)


def test_dialogue_settings_are_refused_for_sentence_pairs(study, pairs_csv):
    config = study.file(
        "c.toml", 'kind = "conditions"\ndialogues_per_hit = 2\nlanguage_check = true\n'
    )
    study.run("estimate", pairs_csv, "--config", config, code=2)
    assert "c.toml:2: unknown option dialogues_per_hit; expected one of" in study.stderr
    assert "c.toml:3: unknown option language_check; expected" in study.stderr


def test_dialogues_required_for_tuples_only(study, pairs_csv):
    study.run("estimate", pairs_csv, code=2)
    assert "missing --dialogues, required for kind 'tuples'" in study.stderr
    config = study.config("conditions")
    study.run("estimate", pairs_csv, "--config", config, "--dialogues", "d.jsonl", code=2)
    assert "which has no dialogues" in study.stderr


def test_preview_writes_the_page(study, triplets_csv):
    page = study.folder / "page.html"
    config = study.config("verification")
    study.run("preview", triplets_csv, "--config", config, "--no-browser", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "How similar are they in one respect?" in text
    assert "what &lt;i&gt;moves&lt;/i&gt; it" in text
