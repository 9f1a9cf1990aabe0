"""Thresholds and baselines for continuous integration: exit codes, messages, JUnit XML."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import compare_models
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.report.checks import Check, baseline_checks, junit, threshold_checks
from giccs.report.model_comparison import compare
from giccs.tasks.pairwise import PairwiseSTS

OVERLAP, CHANCE = "baseline:char-ngram", "baseline:chance"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    sample = read_benchmark("giccs-sample")
    for name in (OVERLAP, CHANCE):
        Store(path).add(evaluate_task(PairwiseSTS(resamples=10), open_model(name), sample))
    return path


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A folder for the results of the command."""
    return tmp_path_factory.mktemp("own")


def run(command, *arguments, code=0):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def evaluated(folder, *options, code=0):
    return run(
        evaluate, OVERLAP, "--task", "pairwise-sts", "--history", "without", "-o", folder, *options, code=code
    )  # fmt: skip


def test_a_metric_below_its_threshold_ends_with_1_after_the_results(own, tmp_path):
    evaluated(own)
    (result,) = Store(own).results()
    rho = result.metrics["spearman"]
    done = evaluated(own, "--fail-below", f"spearman={rho.value - 0.001}")
    assert f"passed: {OVERLAP}: Spearman ρ of at least" in done.stderr
    path = tmp_path / "checks.xml"
    done = evaluated(own, "--fail-below", "spearman=-1", "--fail-below", "pearson=0.9",
                     "--junit", path, code=1)  # fmt: skip
    assert "noise ceiling" in done.stdout
    assert "1 of 2 checks failed" in done.stderr
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    passed, failed = suite.findall("testcase")
    assert passed.find("failure") is None
    assert passed.find("system-out").text == f"{rho.value:.3f} [{rho.low:.3f}, {rho.high:.3f}]"
    assert failed.get("classname") == OVERLAP
    assert failed.find("failure").get("message").startswith("0.")
    document = json.loads(evaluated(own, "--fail-below", "pearson=0.9", "--json", code=1).stdout)
    assert [check["passed"] for check in document["checks"]] == [False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fail-below", "spearman"], "expected METRIC=VALUE"),
        (["--fail-below", "spearman=nan"], "expected a finite number"),
        (["--fail-below", "spearman=1", "--fail-below", "spearman=-1"], "names spearman twice"),
        (["--fail-below", "sperman=0.1"], "did you mean 'spearman'"),
        (["--junit", "x.xml"], "--junit requires --fail-below"),
    ],
)
def test_thresholds_that_say_nothing_are_refused(own, options, message):
    assert message in evaluated(own, *options, code=2).stderr


def test_an_undefined_metric_fails_with_its_reason(folder):
    result = next(iter(Store(folder).results()))
    undefined = Estimate(float("nan"), reason="constant predictions")
    (check,) = threshold_checks(
        [replace(result, metrics={"spearman": undefined})], {"spearman": -1}
    )
    assert not check.passed
    assert check.message == "undefined: constant predictions"


def test_results_of_one_model_with_other_dimensions_have_names_of_their_own(folder):
    result = next(iter(Store(folder).results()))
    short = replace(result, signature={**result.signature, "dimensions": 64})
    (check,) = threshold_checks([short], {"spearman": -1.0})
    assert check.model == f"{result.model}, 64 dimensions"


def test_a_metric_of_which_lower_values_are_better_is_refused(folder):
    """A mean rank of 100 would pass a threshold of 5, and one of 1 fail."""
    result = replace(next(iter(Store(folder).results())), metrics={"mean_rank": Estimate(100.0)})
    with pytest.raises(ValueError, match="lower values of mean_rank are better"):
        list(threshold_checks([result], {"mean_rank": 5.0}))


def test_a_model_that_is_significantly_worse_fails_and_the_better_one_does_not(folder, tmp_path):
    (pair,) = json.loads(run(compare_models, folder, "--json").stdout)["comparisons"][1]["pairs"]
    assert 0 < pair["p"] < 0.05
    better = run(compare_models, folder, "--fail-if-worse-than", CHANCE)
    limits = f"{pair['value']:+.3f} [{pair['low']:+.3f}, {pair['high']:+.3f}]"
    assert f"difference in ρ within dialogues {limits}, " in better.stderr
    assert "one-sided p = 1.000" in better.stderr or "one-sided p = 0.999" in better.stderr
    path = tmp_path / "checks.xml"
    worse = run(compare_models, folder, "--fail-if-worse-than", OVERLAP, "--junit", path, code=1)
    limits = f"{-pair['value']:+.3f} [{-pair['high']:+.3f}, {-pair['low']:+.3f}]"
    assert f"FAILED: {CHANCE}: not worse than {OVERLAP}" in worse.stderr
    assert limits in worse.stderr
    assert limits in path.read_text("utf-8")
    named = run(compare_models, folder, "--fail-if-worse-than", "baseline:chanse", code=2)
    assert f"did you mean '{CHANCE}'" in named.stderr
    alone = run(compare_models, folder, "--model", CHANCE, "--fail-if-worse-than", CHANCE, code=2)
    assert "no model can be compared with" in alone.stderr
    run(compare_models, folder, "--junit", path, code=2)


def test_models_that_do_not_differ_pass_and_the_test_is_one_sided(folder):
    """A difference just below significance of two sides is significant on one side."""
    comparison = compare([Store(folder).with_predictions(each) for each in Store(folder).results()])
    board = next(board for board in comparison.leaderboards if board.metric == "rank_spearman")
    (pair,) = board.pairs
    for p, passes in ((0.09, False), (0.11, True)):
        changed = replace(board, pairs=(replace(pair, p=p),))
        (check,) = baseline_checks(replace(comparison, leaderboards=(changed,)), OVERLAP)
        assert check.passed is passes, check
    untested = replace(board, pairs=(replace(pair, p=float("nan"), reason="too few dialogues"),))
    (check,) = baseline_checks(replace(comparison, leaderboards=(untested,)), OVERLAP)
    assert (check.passed, check.message) == (False, "not tested: too few dialogues")


def test_hostile_names_are_text_in_xml():
    check = Check('"><failure/>', "a & b", True, "<script>")
    (case,) = ElementTree.fromstring(junit([check])).findall("testcase")
    assert case.get("classname") == '"><failure/>'
    assert case.find("system-out").text == "<script>"
    assert case.find("failure") is None


def test_of_several_results_of_a_name_the_newest_is_compared(folder, tmp_path):
    """New weights under the same name: results of the former ones remain in the folder."""
    store = Store(tmp_path / "results")
    results = [Store(folder).with_predictions(result) for result in Store(folder).results()]
    overlap, chance = (next(r for r in results if r.model == name) for name in (OVERLAP, CHANCE))
    former, present = (
        replace(
            predicted, model="static:new", environment={**predicted.environment, "when": when},
            signature={**predicted.signature, "model": "static:new", "content": when},
        )
        for predicted, when in ((chance, "2026-01-01T00:00:00"), (overlap, "2026-02-01T00:00:00"))
    )  # fmt: skip
    for result in (overlap, present, former):
        store.add(result)
    done = run(compare_models, store.folder, "--fail-if-worse-than", OVERLAP)
    assert "1 older results of the same models are left out" in done.stderr
    assert done.stderr.count("passed: static:new") == 1
    assert (
        run(compare_models, store.folder, "--fail-if-worse-than", "static:new").stderr.count(
            "passed"
        )
        == 1
    )


def test_control_characters_are_escaped_in_xml():
    """XML 1.0 has no form for them, so a file with one cannot be read."""
    checks = [Check("a\x01", "b\x1b[31m", False, "c\x00"), Check("d", "e", True, "f\x0b")]
    failed, passed = ElementTree.fromstring(junit(checks)).findall("testcase")
    assert (failed.get("classname"), failed.get("name")) == (r"a\u0001", r"b\u001b[31m")
    assert failed.find("failure").get("message") == r"c\u0000"
    assert passed.find("system-out").text == r"f\u000b"


def test_models_without_a_comparison_fail_and_copies_do_not(folder, tmp_path):
    """A model whose predictions are NaN must not pass because it is in no leaderboard."""
    results = [Store(folder).with_predictions(each) for each in Store(folder).results()]
    overlap = next(result for result in results if result.model == OVERLAP)
    undefined = Estimate(float("nan"), reason="all predictions are equal")
    broken = replace(
        overlap,
        model="broken",
        signature={**overlap.signature, "model": "broken"},
        metrics=dict.fromkeys(overlap.metrics, undefined),
    )
    comparison = compare([*results, broken, results[0]])
    assert {result.model for result in comparison.skipped} == {"broken", results[0].model}
    checks = {check.model: check for check in baseline_checks(comparison, CHANCE)}
    assert checks.keys() == {OVERLAP, "broken"}
    assert checks[OVERLAP].passed
    assert not checks["broken"].passed
    assert checks["broken"].message == "not tested: all predictions are equal"


def test_the_baseline_may_have_another_name_in_tables(folder):
    done = run(
        compare_models, folder, "--fail-if-worse-than", OVERLAP, "--model-name", f"{OVERLAP}=present", code=1
    )  # fmt: skip
    assert "not worse than present" in done.stderr
