"""giccs csts check and conditions as a person calls them."""

import csv
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from giccs.csts.cli import COMMANDS, main

from .test_data import GOOD, REANNOTATED, write


def call(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def cells_of(table):
    """Return the table's second column by its first."""
    rows = (re.split(r"  +", line.strip(), maxsplit=1) for line in table.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "csts_validation.csv", *GOOD)


def test_check_says_what_there_is(good):
    done = call("check", good)
    assert (done.exit_code, done.stderr) == (0, "")
    cells = dict(
        line.rsplit(maxsplit=1) for line in done.stdout.splitlines() if line[-1:].isdigit()
    )
    assert cells["rows"] == "4"
    assert cells["sentence pairs"] == cells["of two rows"] == cells["· first label higher"] == "2"
    assert [cells[f"label {label}"] for label in range(1, 6)] == ["1", "1", "0", "1", "1"]
    assert cells["problems"] == "0"


def test_check_counts_words(good, tmp_path):
    # the kites have 7 and 7 words, the dogs 7 and 5; the conditions 5, 4, 2 and 4
    words = json.loads(call("check", good, "--json").stdout)["words"]
    assert words == {"sentence": (7 + 7 + 7 + 5) / 4, "condition": (5 + 4 + 2 + 4) / 4}
    cells = cells_of(call("check", good).stdout)
    assert (cells["words per sentence"], cells["words per condition"]) == ("6.5", "3.8")
    three = write(
        tmp_path / "a.csv", "One two three.,Four.,,1", "One two three.,Four.,,2", "A.,B.,,1"
    )
    found = json.loads(call("check", three, "--json").stdout)["words"]
    assert found == {"sentence": (3 + 1 + 1 + 1) / 4, "condition": None}  # a pair counts once


def test_check_ends_with_2_where_something_is_wrong(tmp_path):
    path = write(tmp_path / "a.csv", *GOOD[:3])
    done = call("check", path, "--json")
    assert done.exit_code == 2
    told = f"{path}:4: its sentence pair has one row; expected two, with one condition each"
    assert done.stderr == f"{told}\n"
    document = json.loads(done.stdout)
    assert document["problems"] == [told]
    assert document["rows"] == 3
    assert document["pairs_of_two"] == 1


def test_check_counts_the_order_of_labels(tmp_path):
    lines = [
        f"A {n}.,B.,{c},{label}" for n, c, label in zip("112233", "ababab", "122233", strict=True)
    ]
    document = json.loads(call("check", write(tmp_path / "a.csv", *lines), "--json").stdout)
    assert document["order"] == {"falling": 0, "equal": 2, "rising": 1}


def test_check_compares_second_labels(good, tmp_path):
    second = tmp_path / "second.tsv"
    second.write_text("uid\treannotated-label\n0\t5\n1\t-1\n2\t1\n9\t3\n", "utf-8")
    for data in (good, good.parent):  # of a folder the validation split
        done = call("check", data, "--relabelled", second, "--json")
        assert done.exit_code == 0
        result = json.loads(done.stdout)["relabelled"]
        spearman = result.pop("spearman")
        assert (spearman["value"], spearman["n"]) == (pytest.approx(1), 2)
        assert result == {
            "rows": 3,
            "labels": {"1": 1, "2": 0, "3": 0, "4": 0, "5": 1, "-1": 1},
            "compared": 3,
            "valid": 2,
            "changed": 1,
            "accuracy": 0.5,
            "invalid": 1,
            "rows_without_label": ["3"],
            "labels_without_row": ["9"],
        }
    cells = cells_of(call("check", good, "--relabelled", second).stdout)
    assert cells["· changed, of the valid rows"] == "1 (50.0%)"  # the invalid row is not among them
    assert cells["· invalid condition"] == "1 (33.3%)"
    assert cells["· accuracy (equal labels)"] == "1 (50.0%)"


def test_agreement_of_first_and_second_labels(tmp_path):
    rng = np.random.default_rng(4)
    first = rng.integers(1, 6, 60)
    second = np.clip(first + rng.integers(-1, 2, 60), 1, 5)
    second[rng.random(60) < 0.2] = -1
    rows = [f"A {n // 2}.,B.,{'ab'[n % 2]},{label}" for n, label in enumerate(first)]
    data = write(tmp_path / "a.csv", *rows)
    labels = tmp_path / "second.tsv"
    lines = "".join(f"{n}\t{label}\n" for n, label in enumerate(second))
    labels.write_text(f"uid\treannotated-label\n{lines}", "utf-8")
    result = json.loads(call("check", data, "--relabelled", labels, "--json").stdout)["relabelled"]
    valid = second != -1
    rho = stats.spearmanr(first[valid], second[valid]).statistic
    assert result["spearman"]["value"] == pytest.approx(rho)
    assert result["spearman"]["low"] < rho < result["spearman"]["high"]
    assert result["valid"] == result["spearman"]["n"] == valid.sum()
    assert result["changed"] == (first != second)[valid].sum()
    assert result["accuracy"] == pytest.approx((first == second)[valid].mean())
    cells = cells_of(call("check", data, "--relabelled", labels).stdout)
    assert cells["· Spearman ρ of first and second labels"].startswith(f"{rho:.3f} [")
    invalid = "".join(f"{n}\t-1\n" for n in range(60))
    labels.write_text(f"uid\treannotated-label\n{invalid}", "utf-8")
    none = json.loads(call("check", data, "--relabelled", labels, "--json").stdout)["relabelled"]
    assert (none["valid"], none["accuracy"], none["spearman"]["value"]) == (0, None, None)
    assert none["spearman"]["reason"]


def test_check_with_the_published_second_labels(good):
    if not REANNOTATED.is_file():
        pytest.skip(f"{REANNOTATED} is not there; set GICCS_SHARED")
    document = json.loads(call("check", good, "--relabelled", REANNOTATED, "--json").stdout)
    assert document["relabelled"]["rows"] == 4
    assert len(document["relabelled"]["labels_without_row"]) == 2830


def test_conditions_in_every_format(good, tmp_path):
    done = call("conditions", good)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2] == ["1", "type", "2", "50.0", "object", "2", "50.0"]
    assert lines[3] == ["2", "color", "1", "25.0", "animal", "1", "25.0"]
    assert "Forms: of 3, possessive 0, compound 0, feature 0, singleton 1." in done.stdout
    assert "| Feature" in call("conditions", good, "--format", "markdown").stdout
    assert r"\toprule" in call("conditions", good, "--format", "latex").stdout
    table = list(csv.DictReader(io.StringIO(call("conditions", good, "--format", "csv").stdout)))
    assert [row["name"] for row in table if row["part"] == "feature"] == ["type", "color", "number"]
    assert table[0] == {
        "part": "feature", "rank": "1", "name": "type", "conditions": "2", "share": "0.5",
    }  # fmt: skip


def test_conditions_as_a_document(good):
    document = json.loads(call("conditions", good, "--top", 1, "--json").stdout)
    assert document["features"] == [{"name": "type", "count": 2, "share": 0.5}]
    assert document["top_share"] == {"features": 0.5, "entities": 0.5}
    assert document["different_features"] == 3


@pytest.mark.parametrize("ending", ["svg", "png", "json"])
def test_conditions_as_a_figure(good, tmp_path, ending):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    figure = tmp_path / f"conditions.{ending}"
    done = call("conditions", good, "--figure", figure)
    assert done.exit_code == 0, done.output
    assert done.stderr == f"Figure 2 written to {figure}\n"
    starts = {"svg": b"<svg", "png": b"\x89PNG", "json": b"{"}
    assert figure.read_bytes().startswith(starts[ending])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "missing.csv"], "missing.csv: no such file"),
        (["conditions", "missing.csv"], "missing.csv: no such file"),
        (["conditions", "missing.csv", "--figure", "a.gif"], "a.gif: unsupported file type"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments, message):
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_conditions_without_words_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", "A.,B.,.,1", "A.,B.,?,2")
    done = call("conditions", path)
    assert done.exit_code == 2
    assert done.stderr == f"{path}: no condition has words\n"


def test_the_help_of_every_command_loads_no_large_library():
    code = (
        "import sys\nfrom giccs.csts.cli import COMMANDS, main\n"
        "for name in sorted(COMMANDS, key=lambda name: name != 'pairs'):\n"
        "    try: main([name, '--help'], prog_name='giccs csts')\n"
        "    except SystemExit as end: assert not end.code\n"
        "    assert name != 'pairs' or 'numpy' not in sys.modules\n"
        "large = {'torch', 'transformers', 'accelerate', 'sklearn', 'spacy', 'scipy', 'polars',\n"
        "         'altair'}\n"
        "print('LOADED', *(large & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"
    assert {*re.findall(r"^Usage: giccs csts (\S+)", done.stdout, re.M)} == {*COMMANDS}
    assert "giccs csts check csts_train.csv" in done.stdout
    assert "giccs csts conditions folder/" in done.stdout
