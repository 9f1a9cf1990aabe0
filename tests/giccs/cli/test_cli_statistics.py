"""giccs stats as a person calls it."""

import csv
import gzip
import io
import json
import subprocess
import sys
from importlib import metadata, resources

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.cli.statistics import stats
from giccs.description.statistics import describe

from ..benchmark.test_release import write_release
from ..conftest import rows, write
from ..deferred import requires

pytestmark = requires("spacy", "simplemma", "lexicalrichness")


def call(*arguments):
    return CliRunner().invoke(stats, list(map(str, arguments)))


def test_a_person_gets_table_2_and_figure_1_of_the_sample():
    code = "from giccs.cli.statistics import stats; stats(prog_name='giccs-stats')"
    done = subprocess.run(
        [sys.executable, "-c", code, "giccs-sample"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    header, _, *lines = done.stdout.splitlines()
    titles = ["Dialogue turns", "Domain", "Dialogues", "RTTR", "MTLD", "Tokens", "Lemma"]
    assert [cell.strip() for cell in header.split("  ") if cell.strip()] == [
        *titles,
        "Average turn length",
    ]
    cells = [line.split() for line in lines[:13]]
    lengths = [row[0] for row in cells]
    assert lengths == ["3-turn"] * 6 + ["5-turn"] * 6 + ["all"]
    assert sum(int(row[2]) for row in cells if row[0] == "3-turn") == 30
    assert sum(int(row[2]) for row in cells if row[0] == "5-turn") == 30
    assert cells[12][1] == "60"
    assert cells[3][:3] == ["3-turn", "find_restaurant", "12"]
    assert "MTLD of 3-turn find_hotel: too short: read forwards and backwards, its" in done.stdout
    assert "Lemmas by spaCy " in done.stdout
    figure = done.stdout.partition("Score distribution (Figure 1)")[2].splitlines()
    bars = [line.split() for line in figure if "–" in line]
    assert [row[0] for row in bars] == ["0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"]
    assert sum(int(row[1]) for row in bars) == 300
    assert max(len(row[2]) for row in bars) == 40
    assert done.stderr == ""


def test_json_has_the_numbers_where_they_come_from_and_nothing_else(benchmark_file):
    done = call(benchmark_file, "--json", "--by", "source")
    document = json.loads(done.stdout)
    assert list(document) == ["groups", "distribution", "lemmatiser", "signature"]
    items = read_benchmark(benchmark_file).items
    from giccs.description.lemmas import lemmatiser

    expected = [one.document() for one in describe(items, lemmatiser("de"), ["source"])]
    for result, wanted in zip(document["groups"], expected, strict=True):
        assert result["by"] == wanted["by"]
        for name in ("dialogues", "turns", "tokens", "rttr", "lemmas", "mean_turn_length"):
            assert result[name] == wanted[name]
    scores = [item.score for item in items]
    assert [one["items"] for one in document["distribution"]] == [
        sum(k / 5 <= score < (k + 1) / 5 or score == 1 == (k + 1) / 5 for score in scores)
        for k in range(5)
    ]
    assert document["lemmatiser"] == lemmatiser("de").name
    assert document["signature"] == {
        "data": read_benchmark(benchmark_file).fingerprint,
        "giccs": metadata.version("giccs"),
        "spacy": metadata.version("spacy"),
        "simplemma": metadata.version("simplemma"),
        "lexicalrichness": metadata.version("lexicalrichness"),
        "mtld": "strict",
        "mtld_threshold": 0.72,
        "lang": "de",
    }


def test_what_is_not_defined_is_null_with_a_reason_in_json(tmp_path):
    short = [row | {"turns": turns("Eins zwei drei", "Vier")} for row in rows(dialogues=1)]
    path = write(tmp_path / "short.jsonl", [row | {"n_turns": 2} for row in short])
    [part, whole] = json.loads(call(path, "--json").stdout)["groups"]
    assert part["mtld"] is whole["mtld"] is None
    assert part["reasons"]["mtld"].startswith("too short")
    text = call(path).stdout
    assert "MTLD of 2-turn hotel: too short" in text
    assert "MTLD of all: too short" in text
    assert "undefined" in text


def test_table_2_with_the_values_of_lexicalrichness(benchmark_file, tmp_path):
    from lexicalrichness import LexicalRichness

    short = [row | {"turns": turns("Eins zwei drei", "Vier vier")} for row in rows(dialogues=1)]
    path = write(tmp_path / "short.jsonl", [row | {"n_turns": 2} for row in short])
    document = json.loads(call(path, "--json", "--mtld", "lexicalrichness").stdout)
    expected = LexicalRichness("Eins zwei drei\nVier vier").mtld(threshold=0.72)
    assert [group["mtld"] for group in document["groups"]] == [expected, expected]
    assert document["signature"]["mtld"] == "lexicalrichness"
    text = call(path, "--mtld", "lexicalrichness").stdout
    assert "undefined" not in text
    assert f"{expected:.2f}" in text
    assert "MTLD of all: value of LexicalRichness; read forwards, its 5 words" in text
    strict, own = (
        [
            group["mtld"]
            for group in json.loads(call(benchmark_file, "--json", *how).stdout)["groups"]
        ]
        for how in ([], ["--mtld", "lexicalrichness"])
    )
    assert None not in own
    assert [one for one, other in zip(strict, own, strict=True) if one not in (None, other)] == []


def turns(*texts):
    return [{"speaker": "user", "text": text} for text in texts]


def german(*texts):
    row = {"dialogue_id": "d", "source": "", "domain": "", "language": "de"}
    return row | {"turns": turns(*texts)}


def test_csv_has_all_digits(benchmark_file):
    document = json.loads(call(benchmark_file, "--json").stdout)
    table = list(csv.DictReader(io.StringIO(call(benchmark_file, "--format", "csv").stdout)))
    assert len(table) == len(document["groups"])
    for row, group in zip(table, document["groups"], strict=True):
        assert row["n_turns"] == str(group["by"].get("n_turns", ""))
        assert row["domain"] == group["by"].get("domain", "")
        assert float(row["rttr"]) == group["rttr"]
        assert row["mtld"] == ("" if group["mtld"] is None else repr(group["mtld"]))
        assert int(row["lemmas"]) == group["lemmas"]


@pytest.mark.parametrize(
    ("form", "begin", "comment"),
    [("markdown", "| Source", ""), ("latex", "\\begin{tabular}", "% ")],
)
def test_other_formats(benchmark_file, form, begin, comment):
    done = call(benchmark_file, "--by", "source", "--format", form)
    assert done.exit_code == 0
    assert done.stdout.startswith(begin)
    assert f"\n{comment}Lemmas by " in done.stdout
    assert "0.2–0.4" in done.stdout.replace("--", "–")
    selected = call(benchmark_file, "--by", "source", "--format", form, "--columns", "lemmas,part")
    assert "Tokens" not in selected.stdout
    assert selected.stdout.index("Lemma") < selected.stdout.index("Source")
    assert "█" not in done.stdout


def test_the_published_release_is_described(tmp_path):
    done = call(write_release(tmp_path), "--by", "n_turns,original_domain", "--json")
    assert done.exit_code == 0
    *parts, whole = json.loads(done.stdout)["groups"]
    assert whole["dialogues"] == 60
    # turn t of dialogue d is 'Dialog d, Äußerung t mit "Zitat".': six tokens
    assert whole["tokens"] == (30 * 3 + 30 * 5) * 6
    assert whole["mean_turn_length"] == 6
    assert len(parts) == 2 * 7
    assert {part["by"]["original_domain"] for part in parts} >= {"restaurant", "fax"}


@pytest.mark.parametrize("name", ["dialogues.jsonl", "dialogues.jsonl.gz"])
def test_dialogues_without_scores_have_no_distribution_and_that_is_said(tmp_path, name):
    data = resources.files("giccs.data").joinpath("dialogues.jsonl").read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    done = call(path, "--json")
    assert done.stderr == f"{path}: dialogues without scores, so no score distribution\n"
    document = json.loads(done.stdout)
    assert document["distribution"] == []
    of_sample = json.loads(call("giccs-sample", "--json").stdout)
    assert document["groups"] == of_sample["groups"]
    assert "Figure 1" not in call(path).stdout


def test_dialogues_whose_candidates_are_not_written_yet(tmp_path):
    row = {
        "dialogue_id": "d",
        "source": "",
        "domain": "",
        "language": "de",
        "turns": turns("Hallo!", "Guten Tag."),
    }
    done = call(write(tmp_path / "new.jsonl", [row]))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[2].split()[:3] == ["2-turn", "(none)", "1"]


def test_another_language(tmp_path):
    row = {
        "dialogue_id": "d",
        "source": "chat",
        "domain": "tv",
        "turns": turns("She goes there.", "He went there, they go there."),
    }
    path = write(tmp_path / "english.jsonl", [row])
    missing = call(path)
    assert missing.exit_code == 2
    assert missing.stderr == (
        f"{path}: the data state no language, and lemmas depend on it; "
        "expected --language, such as --language de\n"
    )
    assert (
        call(path, "--lang", "en", "--json").stdout
        == call(path, "--language", "en", "--json").stdout
    )
    assert "lang is 'tlh'; expected one of ar, bg, " in call(path, "--language", "tlh").stderr
    document = json.loads(call(path, "--language", "en", "--json").stdout)
    assert " en" in document["lemmatiser"]
    assert document["signature"]["lang"] == "en"
    assert document["groups"][-1]["lemmas"] == 5  # she, go, there, he, they


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--language", "en"],
            "giccs-sample: the language of the data is de: 300, but --language is en; expected",
        ),
        (
            ["--language", "German"],
            "'German' is not a BCP 47 language tag; expected a tag such as de",
        ),
        (["--by", "n_turns,level"], "--by: unknown column 'level'; expected one of n_turns, dom"),
        (["--by", ""], "--by: unknown column ''"),
        (
            ["--figure", "scores.gif"],
            "scores.gif: unsupported file type; expected a name that ends in "
            "one of .svg, .png, .json",
        ),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(arguments, message):
    done = call("giccs-sample", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_broken_data_is_told_line_by_line(tmp_path):
    path = write(tmp_path / "broken.jsonl", [{"dialogue_id": "d", "turns": turns("eins")}, {}])
    done = call(path)
    assert done.exit_code == 2
    assert f"{path}:1: there is one turn" in done.stderr
    assert call(tmp_path / "none.jsonl").stderr == f"{tmp_path / 'none.jsonl'}: no such file\n"


def test_the_figure_is_drawn_of_scores_only(tmp_path, benchmark_file):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    figure = tmp_path / "figures" / "scores.svg"
    done = call(benchmark_file, "--figure", figure)
    assert done.exit_code == 0
    assert done.stderr == f"Figure 1 written to {figure}\n"
    assert "score: 0.8–1; items: " in figure.read_text("utf-8")
    row = german("Hallo!", "Guten Tag.")
    path = write(tmp_path / "dialogues.jsonl", [row])
    done = call(path, "--figure", tmp_path / "no.svg")
    assert (done.exit_code, done.stderr) == (2, f"{path}: has no scores, which --figure requires\n")
    assert "MTLD" in done.stdout
    assert not (tmp_path / "no.svg").exists()


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("spacy", [], "needs spaCy; install it with: pip install 'giccs[stats]'"),
        ("simplemma", [], "needs simplemma; install it with: pip install 'giccs[stats]'"),
        (
            "lexicalrichness",
            [],
            "needs LexicalRichness; install it with: pip install 'giccs[stats]'",
        ),
        (
            "altair",
            ["--figure", "a.svg"],
            "needs Altair; install it with: pip install 'giccs[charts]'",
        ),
    ],
)
def test_what_is_not_installed_is_one_line(monkeypatch, module, arguments, message):
    monkeypatch.setitem(sys.modules, module, None)  # neither found nor importable
    done = call("giccs-sample", *arguments)
    assert (done.exit_code, done.stderr) == (1, f"Error: {message}\n")


def test_an_impostor_of_a_model_is_warned_of(tmp_path, monkeypatch):
    info = tmp_path / "de_core_news_sm-999.9.9.dist-info"
    info.mkdir()
    about = "Metadata-Version: 2.1\nName: de_core_news_sm\nVersion: 999.9.9\n"
    (info / "METADATA").write_text(about, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    done = call("giccs-sample", "--quiet")
    assert done.exit_code == 0
    assert done.stderr == (
        "warning: giccs-sample: de_core_news_sm 999.9.9 is installed but is not a model of spaCy; ignored\n"
    )
