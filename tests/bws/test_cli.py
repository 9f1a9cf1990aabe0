"""The commands end to end: what they write, print, refuse, and how they end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import bws
from bws import cli
from bws.files import read_judgments, read_scores, read_tuples
from bws.scoring import METHODS

COMMANDS = ["make_tuples", "score", "reliability", "agreement", "simulate"]


def run(command, *arguments, stdin=None, code=0):
    """Run a command; return (standard output, standard error)."""
    arguments = [str(argument) for argument in arguments]
    result = CliRunner().invoke(getattr(cli, command), arguments, input=stdin)
    assert result.exit_code == code, result.output
    if code in (0, 2):
        assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def study(folder):
    """Twelve items, their true scores, 24 tuples of four, three simulated annotators."""
    items = [f"i{n:02}" for n in range(12)]
    (folder / "items.txt").write_text("\n".join(items))
    rows = "".join(f"{item},{n / 6 - 1}\n" for n, item in enumerate(items))
    (folder / "truth.csv").write_text("item,score\n" + rows)
    run("make_tuples", "items.txt", "-k", 4, "-o", "tuples.csv")
    run("simulate", "tuples.csv", "--truth", "truth.csv", "--annotators", 3, "-o", "judgments.csv")
    return folder


# make-tuples


def test_tuples_are_what_the_function_makes(study):
    items = [f"i{n:02}" for n in range(12)]
    expected = bws.make_tuples(items, 4, factor=2, seed=0)
    assert list(read_tuples("tuples.csv").rows()) == list(expected.rows())


def test_tuples_go_to_standard_output_and_the_rest_does_not(study):
    out, err = run("make_tuples", "items.txt", "-k", 4, "--audit")
    assert out == (study / "tuples.csv").read_text()
    assert "24 tuples of 12 items" in err
    assert re.search(r"appearances of an item, minimum +8\n", err)


def test_items_come_from_standard_input_and_tuples_leave_as_km(folder):
    out, err = run(
        "make_tuples", "-", "-k", 2, "--tuples", 3, "--format", "km", "--quiet", stdin="a\nb\nc\n"
    )
    assert sorted(sorted(line.split("\t")) for line in out.splitlines()) == [
        ["a", "b"],
        ["a", "c"],
        ["b", "c"],
    ]
    assert err == ""


def test_a_dialogues_file_gets_a_design_for_each_dialogue(folder):
    dialogues = [
        {
            "dialogue_id": d,
            "turns": [],
            "candidates": [{"utterance_id": f"{d}{u}"} for u in "abcde"],
        }
        for d in ("x", "y")
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(d) + "\n" for d in dialogues))
    out, _ = run("make_tuples", "d.jsonl", "-k", 3, "--tuples", 10, "--json", "--audit")
    document = json.loads(out)
    assert (document["tuples"], document["groups"], document["audit"]["duplicate_tuples"]) == (
        20,
        2,
        0,
    )
    sets = {(row["group"], frozenset(row["items"])) for row in document["design"]}
    assert len(sets) == 20
    assert all(item.startswith(group) for group, items in sets for item in items)


@pytest.fixture
def dialogues(folder):
    """Twenty dialogues of four candidates."""
    rows = [
        {"dialogue_id": f"d{n}", "candidates": [{"utterance_id": f"{n}{u}"} for u in "abcd"]}
        for n in range(20)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_tuples_that_would_repeat_are_refused_or_all_distinct_ones_taken(dialogues):
    out, err = run("make_tuples", "d.jsonl", "-k", 4)
    assert len(out.splitlines()) == 1 + 20  # of 160 tuples, 140 repeated another
    assert err.splitlines() == [
        "20 tuples of 80 items in 20 groups",
        "20 groups of 4 items: all 1 distinct tuples of 4 are used; 2 per item would be 8",
    ]
    for asked in (["--tuples", 8], ["--factor", 2]):
        out, err = run("make_tuples", "d.jsonl", "-k", 4, *asked, code=2)
        assert out == ""
        assert "groups 'd0', 'd1', 'd2' and 17 more: 4 items, tuples of 4: 1 distinct" in err
    out, err = run("make_tuples", "d.jsonl", "-k", 4, "--tuples", 8, "--allow-repeats", "--quiet")
    assert len(out.splitlines()) == 1 + 160
    assert err == "warning: d.jsonl: 140 of 160 tuples repeat the items of another\n"


def test_repeats_of_a_canonical_design_are_reported(folder):
    (folder / "seven.txt").write_text("a\nb\nc\nd\ne\nf\ng\n")
    repeated = bws.make_tuples(list("abcdefg"), 3, compat="km", seed=1).n_repeated
    assert repeated
    arguments = ["seven.txt", "-k", 3, "--compat", "km", "--seed", 1]
    _, err = run("make_tuples", *arguments, "-o", "t.csv", "--quiet")
    assert err == f"warning: seven.txt: {repeated} of 14 tuples repeat the items of another\n"
    assert json.loads(run("make_tuples", *arguments, "--json")[0])["repeated_tuples"] == repeated


def test_an_extended_design_keeps_the_old_tuples(study):
    (study / "more.txt").write_text("i11\nn1\nn2\n")
    run("make_tuples", "more.txt", "-k", 4, "--extend", "tuples.csv", "-o", "both.csv")
    old, both = list(read_tuples("tuples.csv").rows()), list(read_tuples("both.csv").rows())
    assert both[: len(old)] == old
    assert len(both) > len(old)
    assert {"n1", "n2"} <= {item for _, _, items in both[len(old) :] for item in items}


def test_rules_keep_items_apart_and_bring_them_together(study):
    (study / "apart.csv").write_text('i00,i01\ni02,"i03",i04\n')
    (study / "together.tsv").write_text("i05\ti06\n")
    rules = ["--keep-apart", "apart.csv", "--keep-together", "together.tsv"]
    run("make_tuples", "items.txt", "-k", 4, *rules, "-o", "t.csv")
    sets = [set(items) for _, _, items in read_tuples("t.csv").rows()]
    for pair in ({"i00", "i01"}, {"i02", "i03"}, {"i02", "i04"}, {"i03", "i04"}):
        assert not any(pair <= items for items in sets)
    assert any({"i05", "i06"} <= items for items in sets)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", 4, "--factor", 2, "--tuples", 5], "mutually exclusive"),
        (["-k", 4, "--factor", 0.01], "factor 0.01 gives no tuple"),
        (["-k", 13], "13 is not in the range 2<=x<=12"),
        (["-k", 4, "--factor", "nan"], "Invalid value for '--factor': nan is not finite"),
        (["-k", 3, "--extend", "tuples.csv"], "have 4 items; use -k 4"),
        (["-k", 4, "--extend", "tuples.csv"], "tuples.csv contains all items already"),
        (
            ["-k", 4, "--extend", "tuples.csv", "--tuples", 4],
            "--extend cannot be combined with --tuples",
        ),
        (["-k", 4, "--keep-apart", "missing.csv"], "missing.csv: no such file"),
        (
            ["-k", 4, "--keep-apart", "apart.csv"],
            "apart.csv:2: 'i00'; expected at least two distinct items",
        ),
    ],
)
def test_wrong_designs_are_refused(study, arguments, message):
    (study / "apart.csv").write_text("i00,i01\ni00\n")
    out, err = run("make_tuples", "items.txt", *arguments, code=2)
    assert message in err
    assert out == ""


# simulate


def test_simulated_judgments_are_what_the_function_makes(study):
    tuples, truth = read_tuples("tuples.csv"), read_scores("truth.csv")
    expected = bws.simulate(tuples, truth, 3, noise=0.25, seed=0)
    assert list(read_judgments("judgments.csv").records()) == list(expected.records())
    assert (
        (study / "judgments.csv")
        .read_text()
        .startswith("tuple_id,group,item1,item2,item3,item4,best,worst,annotator,shown\n")
    )


def test_judgments_go_to_standard_output_or_are_counted_as_json(study):
    out, _ = run("simulate", "tuples.csv", "--truth", "truth.csv", "--annotators", 3)
    assert out == (study / "judgments.csv").read_text()
    out, _ = run("simulate", "tuples.csv", "--truth", "truth.csv", "--json", "-o", "j.csv")
    assert json.loads(out) == {
        "judgments": 120, "tuples": 24, "annotators": 5, "noise": 0.25, "model": "gumbel",
        "disagreement": 0.0, "careless": 0.0, "position_bias": 0.0, "seed": 0,
    }  # fmt: skip
    assert len(read_judgments("j.csv")) == 120


def test_items_without_truth_are_refused(study):
    (study / "truth.csv").write_text("item,score\ni00,1\n")
    _, err = run("simulate", "tuples.csv", "--truth", "truth.csv", code=2)
    assert err.startswith("truth.csv: 11 items have no true score: ")


# score


def test_scores_are_what_the_function_gives(study):
    run("score", "judgments.csv", "-o", "scores.csv", "--scale", "unit")
    result, expected = (
        read_scores("scores.csv"),
        bws.score(read_judgments("judgments.csv"), scale="unit"),
    )
    assert result.items.tolist() == expected.items.tolist()
    assert result.score.tolist() == expected.score.tolist()
    assert result.appearances.tolist() == [24] * 12


def test_scores_go_to_standard_output_and_what_was_read_is_said(study):
    out, err = run("score", "judgments.csv")
    run("score", "judgments.csv", "-o", "scores.csv")
    assert out == (study / "scores.csv").read_text()
    assert err == "judgments.csv (csv): 72 judgments of 24 tuples, 12 items, 3 annotators\n"
    assert run("score", "judgments.csv", "--quiet")[1] == ""


def test_a_table_shows_both_ends_where_the_scores_go_to_a_file(study):
    out, _ = run(
        "score", "judgments.csv", "-o", "scores.csv", "--bootstrap", 20, "--cluster", "tuple"
    )
    lines = out.splitlines()
    assert lines[0].split() == ["item", "score", "low", "high", "appearances", "best", "worst"]
    scores = read_scores("scores.csv")
    best_first = [scores.items[place] for place in (-scores.score).argsort(kind="stable")]
    shown = [line.split()[0] for line in lines[2:]]
    assert shown == [*best_first[:5], "...", *best_first[-5:]]


def test_scores_as_json_and_nothing_else(study):
    out, err = run("score", "judgments.csv", "--json", "--method", "bradley-terry", "--prior", 2)
    document = json.loads(out)
    assert document.keys() == {"scores", "source", "left_out", "notes", "signature"}
    assert document["scores"][0].keys() == {
        "item",
        "group",
        "score",
        "appearances",
        "best",
        "worst",
    }
    assert (document["signature"]["method"], document["signature"]["prior"]) == ("bradley-terry", 2)
    assert "72 judgments" in err


@pytest.mark.parametrize("method", METHODS)
def test_every_method_scores(study, method):
    out, _ = run("score", "judgments.csv", "--method", method, "--format", "km")
    assert out.splitlines()[0].startswith("i11\t")


def test_a_batch_is_put_on_the_scale_of_an_earlier_one(study):
    earlier = Path("judgments.csv").read_text("utf-8").replace("simulated-", "earlier-")
    Path("earlier.csv").write_text(earlier, "utf-8")
    run("score", "judgments.csv", "--anchor", "earlier.csv", "-o", "anchored.csv")
    run("score", "judgments.csv", "-o", "scores.csv")
    # the same answers by other people: a slope of 1, an offset of 0
    assert read_scores("anchored.csv").score == pytest.approx(read_scores("scores.csv").score)


def test_model_intervals(study):
    out, _ = run("score", "judgments.csv", "--method", "bradley-terry", "--intervals")
    assert out.startswith("item,group,score,appearances,best,worst,low,high\n")
    _, err = run("score", "judgments.csv", "--intervals", "--method", "elo", code=2)
    assert "method elo has no standard errors" in err


def test_one_flag_gives_intervals_over_annotators_and_tuples(study):
    run(
        "simulate", "tuples.csv", "--truth", "truth.csv", "--annotators", 6, "-o", "six.csv",
    )  # fmt: skip
    out, err = run("score", "six.csv", "--intervals", "--json")
    document = json.loads(out)
    signature = document["signature"]
    assert (signature["cluster"], signature["standard_error"]) == ("both", "clustered counts")
    assert all(row["low"] <= row["score"] <= row["high"] for row in document["scores"])
    assert "6 annotators: the interval is approximate" in err
    out, err = run("agreement", "six.csv", "--bootstrap", 10)
    assert "deprecated" in err
    assert "use --intervals" in err
    assert out == run("agreement", "six.csv", "--intervals")[0]
    assert "[" in out


def test_options_that_a_method_lacks_are_refused(study):
    _, err = run("score", "judgments.csv", "--prior", 2, code=2)
    assert (
        err.splitlines()[-1]
        == "Error: method counting has no option 'prior'; available options: none"
    )


def test_invalid_rows_stop_the_command_or_are_left_out_and_counted(study):
    lines = (study / "judgments.csv").read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace("simulated-2", "simulated-1")
    lines[4] = "t03,,a\n"
    (study / "judgments.csv").write_text("".join(lines))
    expected = [
        "judgments.csv:3: annotator 'simulated-1' has judged this tuple in line 2; expected one judgment "
        "per annotator and tuple",
        "judgments.csv:5: 3 fields; expected 10, as in the first row",
    ]
    out, err = run("score", "judgments.csv", code=2)
    assert (out, err.splitlines()[-2:]) == ("", expected)
    out, err = run("score", "judgments.csv", "--on-invalid", "skip", "--json", "--quiet")
    assert json.loads(out)["left_out"] == expected
    assert err.splitlines() == [
        *(f"warning: {line}" for line in expected),
        "warning: judgments.csv: 2 rows were skipped",
    ]


def test_columns_of_a_batch_are_named_on_the_command_line(folder):
    (folder / "b.csv").write_text(
        "WorkerId,Input.x1,Input.x2,Answer.q1,Answer.q2\nw,a,b,a,b\nv,a,b,a,b\n"
    )
    parts = [
        "--column",
        "items=Input.x1,Input.x2",
        "--column",
        "best=Answer.q1",
        "--column",
        "worst=Answer.q2",
    ]
    out, _ = run("score", "b.csv", "--from", "mturk-batch", *parts)
    assert out.splitlines()[1:] == ["a,,1.0,2,2,0", "b,,-1.0,2,0,2"]
    assert run("score", "b.csv", *parts)[0] == out
    assert "ROLE one of items" in run("score", "b.csv", "--column", "bset=x", code=2)[1]


# reliability and agreement


def test_reliability_prints_what_the_contract_says(study):
    out, _ = run("reliability", "judgments.csv", "--json", "--trials", 5)
    document = json.loads(out)
    expected = bws.reliability(read_judgments("judgments.csv"), trials=5).document()
    assert document == json.loads(json.dumps(expected))
    (group,) = document["groups"]
    assert group["by"] == {}
    assert {
        "items", "tuples", "annotations", "trials", "missing_items", "pearson", "spearman",
        "spearman_brown",
    } <= group.keys()  # fmt: skip
    assert group["pearson"].keys() == {"mean", "sd"}
    assert group["spearman_brown"].keys() == {"pearson", "spearman"}


def test_a_curve_comes_with_the_reliability(study):
    out, _ = run("reliability", "judgments.csv", "--curve", "--target", 0.95, "--trials", 5)
    assert "annotations per tuple" in out
    assert "between halves" not in out
    assert "reliability of 0.95" in out
    out, _ = run("reliability", "judgments.csv", "--curve", "--json", "--trials", 5)
    assert [point["annotations"] for point in json.loads(out)["curve"]["points"]] == [2, 3]


def test_components_and_a_plan_come_with_the_reliability(study):
    out, _ = run("reliability", "judgments.csv", "--components", "--trials", 2)
    assert "reliability of the scores, all errors included" in out
    assert "present design" not in out
    options = ("--plan", "--target", 0.95, "--price", 0.1, "--trials", 2)
    out, _ = run("reliability", "judgments.csv", *options)
    assert "all errors included" in out
    assert "present design" in out
    document = json.loads(run("reliability", "judgments.csv", *options, "--json")[0])
    assert document["components"].keys() == {"variances", "reliability", "root", "notes"}
    assert document["components"]["variances"].keys() == {
        "item", "design", "annotator", "residual"
    }  # fmt: skip
    plan = document["plan"]
    assert plan["price"] == 0.1
    assert plan["cheapest"] == plan["reaching"][0]
    assert plan["cheapest"]["cost"] == pytest.approx(0.1 * plan["cheapest"]["judgments"])
    assert plan["alternatives"][0]["reliability"] == pytest.approx(
        document["components"]["reliability"]["value"]
    )


def test_agreement_prints_what_the_contract_says(study):
    out, _ = run("agreement", "judgments.csv", "--json", "--annotators")
    document = json.loads(out)
    (group,) = document["groups"]
    assert {"by", "tuples", "annotations", "alpha", "strong"} <= group.keys()
    assert group["alpha"].keys() == {"both", "best", "worst", "joint"}
    assert group["strong"].keys() == {"best", "worst"}
    assert [a["annotator"] for a in document["annotators"]["annotators"]] == [
        f"simulated-{n}" for n in (1, 2, 3)
    ]
    out, _ = run("agreement", "judgments.csv", "--annotators", "--intervals")
    assert "alpha both" in out
    assert "compliance" in out


@pytest.mark.parametrize("command", ["reliability", "agreement"])
def test_parts_are_told_apart_by_metadata(study, command):
    lines = [f"t{n:02},{'even' if n % 2 == 0 else 'odd'}" for n in range(1, 25)]
    (study / "m.csv").write_text("tuple_id,kind\n" + "\n".join(lines) + "\n")
    by = ["--metadata", "m.csv", "--by", "kind"]
    out, _ = run(command, "judgments.csv", *by, "--json")
    groups = json.loads(out)["groups"]
    assert [(group["by"], group["tuples"]) for group in groups] == [
        ({}, 24), ({"kind": "even"}, 12), ({"kind": "odd"}, 12),
    ]  # fmt: skip
    assert "kind=even" in run(command, "judgments.csv", *by)[0]
    _, err = run(command, "judgments.csv", "--metadata", "m.csv", "--by", "sort", code=2)
    assert err.splitlines()[-1] == "m.csv: no column sort; expected one of kind"
    assert (
        "--metadata and --by must be used together"
        in run(command, "judgments.csv", "--by", "kind", code=2)[1]
    )


def test_judgments_come_from_standard_input(study):
    text = (study / "judgments.csv").read_text()
    out, err = run("agreement", "-", stdin=text)
    assert "alpha both" in out
    assert err.startswith("<stdin> (csv): 72 judgments")


# all of them


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_one_line_and_exit_code_2(folder, command):
    more = {"make_tuples": ["-k", 3], "simulate": ["--truth", "t.csv"]}.get(command, [])
    out, err = run(command, "nowhere.csv", *more, code=2)
    assert (out, err) == ("", "nowhere.csv: no such file\n")


def test_a_folder_that_cannot_be_written_to_is_exit_code_1(study):
    (study / "file").write_text("")
    _, err = run("score", "judgments.csv", "--quiet", "-o", "file/scores.csv", code=1)
    assert err.startswith("Error: ")
    assert len(err.splitlines()) == 1


def test_help_loads_nothing_heavy():
    """Of all commands in one process."""
    code = (
        "import sys\n"
        "from bws import cli\n"
        f"for name in {[*COMMANDS]}:\n"
        "    try: getattr(cli, name)(['--help'])\n"
        "    except SystemExit as end: assert not end.code\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert "click" in loaded
    assert not loaded & {"scipy", "polars", "tabulate", "tqdm"}


# the package


def test_every_public_name_is_there_and_has_a_doctested_home():
    for name in bws.__all__:
        assert getattr(bws, name).__name__ == name if name != "METHODS" else bws.METHODS
    assert sorted(bws._HOME_OF) == sorted(bws.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bws.nothing  # noqa: B018


def test_functions_are_not_hidden_by_the_modules_of_their_names():
    code = (
        "import bws.split_half, bws.simulation, bws, sys\n"
        "from bws.chance_agreement import agreement\n"
        "assert callable(bws.reliability) and callable(bws.simulate)\n"
        "assert bws.agreement is agreement\n"
        "from bws import power, files\n"
        "assert callable(power) and files.__name__ == 'bws.files'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_nothing_heavy():
    code = "import bws, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "scipy", "polars", "click"}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("reliability", ["--curve", "--components", "--plan", "--price", "0.05"]),
        ("agreement", ["--annotators", "--items", "--intervals"]),
        ("score", ["--intervals", "--format", "table"]),
    ],
)
def test_tables_fit_100_columns(study, monkeypatch, command, options):
    monkeypatch.setenv("COLUMNS", "100")
    out, _ = run(command, "judgments.csv", *options)
    assert [line for line in out.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize(
    ("command", "options", "column"),
    [
        ("score", ["-o", "-"], "score"),
        ("reliability", [], "pearson"),
        ("agreement", [], "alpha_both"),
    ],
)
def test_tables_have_formats(study, command, options, column):
    out, _ = run(command, "judgments.csv", *options, "--format", "csv", "--columns", column)
    assert out.splitlines()[0] == column
    assert float(out.splitlines()[1]) <= 1
    out, _ = run(command, "judgments.csv", *options, "--format", "markdown")
    assert re.search(r"^\|-+\|", out, re.M)
    out, _ = run(
        command, "judgments.csv", *options, "--format", "latex", "--caption", "50 %", "--label", "t"
    )
    assert r"\caption{50 \%}" in out
    assert r"\toprule" in out


def test_csv_has_one_table(study):
    _, err = run("reliability", "judgments.csv", "--curve", "--format", "csv", code=2)
    assert "CSV has a single table" in err


def test_options_of_latex_and_columns_are_refused_elsewhere(study):
    _, err = run("score", "judgments.csv", "--caption", "Scores", code=2)
    assert "--caption requires --format latex" in err
    _, err = run("score", "judgments.csv", "--format", "km", "--columns", "item", code=2)
    assert "--columns cannot be combined with --format km" in err


def test_the_audit_has_formats(study):
    out, _ = run(
        "make_tuples", "items.txt", "-k", 4, "--audit", "--audit-format", "csv", "-o", "t.csv"
    )
    assert out.splitlines()[:2] == ["name,what,value", "tuples,tuples,24"]
