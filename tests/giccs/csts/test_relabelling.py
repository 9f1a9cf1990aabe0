"""C-STS with second labels: what is kept, and that no sentence pair is on both sides."""

import csv
import json

import pytest
from click.testing import CliRunner

from giccs.csts.cli.relabel import relabel
from giccs.csts.data import divide_rows, read_csts, write_csts

SAMPLE = read_csts("csts-sample", "train")


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99])
def test_no_sentence_pair_is_on_both_sides_and_the_share_holds_to_one_pair(share):
    parts = divide_rows(SAMPLE, share, seed=3)
    here, there = ({instance.pair for instance in part.instances} for part in parts)
    assert not here & there
    assert sum(len(part.instances) for part in parts) == len(SAMPLE.instances)
    assert 0 <= len(parts[0].instances) - share * len(SAMPLE.instances) < 2


def test_a_seed_is_a_division_and_another_seed_another():
    assert divide_rows(SAMPLE, 0.5, 1) == divide_rows(SAMPLE, 0.5, 1)
    assert divide_rows(SAMPLE, 0.5, 1) != divide_rows(SAMPLE, 0.5, 2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        divide_rows(SAMPLE, 1.0, 1)


def test_the_command_writes_valid_rows_with_their_second_labels(tmp_path):
    rows = SAMPLE.instances[:40]
    write_csts(rows, tmp_path / "csts_validation.csv")
    second = {one.uid: -1 if n % 10 == 0 else 1 + n % 5 for n, one in enumerate(rows[:-1])}
    lines = [f"{uid}\t{label}" for uid, label in {**second, "unknown": 3}.items()]
    labels = tmp_path / "labels.tsv"
    labels.write_text("\n".join(["uid\treannotated-label", *lines]), "utf-8")
    out = tmp_path / "l-csts"
    arguments = [str(tmp_path), "--labels", str(labels), "-o", str(out), "--json"]
    done = CliRunner().invoke(relabel, arguments)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["left_out"] == {
        "invalid": 4, "rows_without_label": 1, "labels_without_row": 1,
    }  # fmt: skip
    with (out / "csts_validation.csv").open() as file:
        whole = {row["uid"]: int(row["label"]) for row in csv.DictReader(file)}
    assert whole == {uid: label for uid, label in second.items() if label != -1}
    parts = [read_csts(out / "divided", split) for split in ("train", "test")]
    assert sum(len(part.instances) for part in parts) == len(whole)


def test_labels_of_other_data_are_refused(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("uid,reannotated-label\nnobody,3\n", "utf-8")
    done = CliRunner().invoke(
        relabel, ["csts-sample", "--labels", str(labels), "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 2
    assert "no uid of" in done.output
    assert not (tmp_path / "out").exists()


@pytest.fixture
def second(tmp_path):
    """A folder with a validation split, and second labels of it."""
    write_csts(SAMPLE.instances[:6], tmp_path / "csts_validation.csv")
    labels = tmp_path / "labels.csv"
    lines = [f"{instance.uid},3" for instance in SAMPLE.instances[:6]]
    labels.write_text("\n".join(["uid,reannotated-label", *lines]), "utf-8")
    return tmp_path, labels


@pytest.mark.parametrize(("data", "message"), [
    (".", "-o and DATA (.) are the same folder"),
    ("csts_validation.csv", "would overwrite its own input"),
])  # fmt: skip
def test_the_first_labels_are_not_overwritten(second, data, message, monkeypatch):
    folder, labels = second
    before = (folder / "csts_validation.csv").read_bytes()
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(relabel, [data, "--labels", str(labels), "-o", str(folder)])
    assert done.exit_code == 2
    assert message in done.stderr
    assert (folder / "csts_validation.csv").read_bytes() == before
    assert not (folder / "divided").exists()


@pytest.mark.parametrize(
    ("share", "why"), [("nan", "nan is not finite"), ("0.9999", "leaves a split empty")]
)
def test_no_part_is_empty(second, share, why):
    folder, labels = second
    out = folder / "out"
    arguments = [str(folder), "--labels", str(labels), "--test-share", share, "-o", str(out)]
    done = CliRunner().invoke(relabel, arguments)
    assert done.exit_code == 2
    assert why in done.stderr
    assert not out.exists()
