"""giccs expert as a person calls it: a sheet out, filled in, and what does not match."""

import csv
import json

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.cli.expert import expert
from giccs.preparation.expert import item_code

SAMPLE = read_benchmark("giccs-sample")
DIFFERENT = [SAMPLE.items[7], SAMPLE.items[151]]


def call(*arguments):
    return CliRunner().invoke(expert, list(map(str, arguments)))


@pytest.fixture
def sheet(tmp_path):
    """A sheet as the command writes it, filled in: two judgments differ, one is open."""
    path = tmp_path / "sheet.csv"
    assert call("giccs-sample", "--sheet", path).exit_code == 0
    items = {item_code(item): item for item in SAMPLE.items}
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        one = items[row["code"]]
        high = (one.score > 0.5) != (one in DIFFERENT)
        row["judgment"] = "" if one is SAMPLE.items[20] else "höher" if high else "niedriger"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_mismatches_are_listed_as_in_table_4(sheet):
    done = call("giccs-sample", "--expert", sheet)
    assert done.exit_code == 0
    assert "1 items have no judgment yet" in done.stderr
    header, _, *lines = done.stdout.splitlines()
    columns = [
        "Last turn of the dialogue",
        "Paired sentence",
        "Calculated score",
        "Expert evaluation",
    ]
    assert [cell.strip() for cell in header.split("  ") if cell.strip()] == columns
    for line, one in zip(lines[:2], DIFFERENT, strict=True):
        assert line.startswith(one.last_turn)
        assert one.utterance in line
        assert f"{one.score:.2f}" in line
        assert line.rstrip().endswith("< 0.5" if one.score > 0.5 else "> 0.5")
    middle = sum(item.score == 0.5 for item in SAMPLE.items)
    whole = next(line for line in lines if line.startswith("all "))
    n = 300 - middle - 1
    assert whole.split()[1:4] == [str(n - 2), str(n), f"{(n - 2) / n:.3f}"]
    assert [line.split()[0] for line in lines if "=" in line] == [
        "n_turns=3", "n_turns=5", "source=spoken", "source=written",
    ]  # fmt: skip


def test_json_has_what_the_table_has(sheet):
    done = call("giccs-sample", "--expert", sheet, "--json")
    result = json.loads(done.stdout)
    assert [m["item_id"] for m in result["mismatches"]] == [one.item_id for one in DIFFERENT]
    assert set(result["mismatches"][0]) == {"item_id", "last_turn", "utterance", "score", "expert"}
    whole = result["groups"][0]
    assert whole["by"] == {}
    assert whole["open"] == 1
    assert whole["share"]["value"] == pytest.approx(whole["agree"] / whole["share"]["n"])
    assert sum(group["agree"] for group in result["groups"][1:3]) == whole["agree"]


def test_csv_has_the_mismatches_alone(sheet):
    rows = list(
        csv.DictReader(
            call(
                "giccs-sample", "--expert", sheet, "--format", "csv", "--quiet"
            ).stdout.splitlines()
        )
    )
    assert [(row["item_id"], float(row["score"])) for row in rows] == [
        (one.item_id, one.score) for one in DIFFERENT
    ]


@pytest.mark.parametrize(("form", "mark"), [("markdown", "|---"), ("latex", r"\begin{tabular}")])
def test_papers_get_their_tables(sheet, form, mark):
    assert mark in call("giccs-sample", "--expert", sheet, "--format", form).stdout


def test_a_bar_in_a_text_does_not_end_the_cell(tmp_path, benchmark_file):
    rows = [json.loads(line) for line in benchmark_file.read_text("utf-8").splitlines()]
    rows[0] |= {"utterance": "a|b\nc", "score": 0.9}
    benchmark_file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    judged = tmp_path / "e.csv"
    lines = [
        f"{row['item_id']},{'<' if row is rows[0] or row['score'] < 0.5 else '>'}\n" for row in rows
    ]
    judged.write_text("item_id,judgment\n" + "".join(lines), "utf-8")
    done = call(benchmark_file, "--expert", judged, "--format", "markdown")
    assert r"| a\|b c " in done.stdout


def test_a_filled_in_sheet_is_not_overwritten(sheet):
    before = sheet.read_bytes()
    done = call("giccs-sample", "--sheet", sheet)
    assert done.exit_code == 2
    assert "already exists" in done.stderr
    assert sheet.read_bytes() == before


def test_a_sheet_can_go_to_standard_output():
    done = call("giccs-sample", "--sheet", "-", "--seed", 3)
    assert len(list(csv.DictReader(done.stdout.splitlines(keepends=True)))) == 300
    assert "300 items of 60 dialogues" in done.stderr


def test_excel_gets_its_mark(tmp_path):
    assert call("giccs-sample", "--sheet", tmp_path / "s.csv", "--bom").exit_code == 0
    assert (tmp_path / "s.csv").read_bytes().startswith(b"\xef\xbb\xbfcode,")


@pytest.mark.parametrize("arguments", [[], ["--sheet", "a.csv", "--expert", "b.csv"]])
def test_one_of_both_is_asked_for(arguments):
    done = call("giccs-sample", *arguments)
    assert done.exit_code == 2
    assert "either --sheet FILE or --expert FILE" in done.stderr


def test_problems_are_a_line_each(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("item_id,judgment\nnobody,higher\n", "utf-8")
    done = call("giccs-sample", "--expert", path)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == f"{path}:2: item_id 'nobody' is not in giccs-sample"
    assert "300 items have no row" in done.stderr.splitlines()[1]
