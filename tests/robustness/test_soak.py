"""The soak: what is called flat, what is called broken, and a study that goes on for some seconds."""

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from mturk.kinds import Behaviour
from mturk.study.simulated_workers import read_truth, simulate_workers, simulated_worker_ids
from robustness.soak import __main__ as command
from robustness.soak.flatness import count_verdict, trend, verdict
from robustness.soak.people import CrowdSettings, read_entries
from robustness.soak.samples import BackendMonitor, Sample, samples_csv
from robustness.soak.study import FinalState, Requester, SoakPlan, service
from robustness.soak.table import block, document, has_broken_promise, promises, quarters

DATA = Path(__file__).parents[2] / "giccs" / "data"
HOUR = np.arange(10.0, 3610.0, 10.0)
GOOD = FinalState(
    acknowledged=900, submissions=900, lost=0, unacknowledged=0, doubled=0, over=0, judgments=1780,
    judgments_wanted=1780, batches=3, hits=90, left=0, accounts=30, approved=890, rejected=10,
    bonuses=20, available="999622.60", available_wanted="999622.60", held="0.00",
)  # fmt: skip


def noise(alike, seed=0):
    """A stationary series whose neighbours have this correlation."""
    draws = np.random.default_rng(seed).normal(size=len(HOUR))
    for index in range(1, len(draws)):
        draws[index] += alike * draws[index - 1]
    return draws


def watched(rss, **changes):
    """A backend that was seen for an hour, with 4 submissions a second and a page for each."""
    result = BackendMonitor("SQLite", "hits.db", None, pids=[1])
    result.pages = [(float(at), 0.001 * (at % 100)) for at in range(1, 3600)]
    for at, value in zip(HOUR, rss, strict=True):
        sample = Sample(
            at, "SQLite", 0, value, value, 40, 20, at / 10, 5.0, int(4 * at), 0, 0, 1.0, 2.0
        )
        result.samples.append(replace(sample, **changes))
    return result


def outcomes(found, there=GOOD):
    return {row["promise"]: row["outcome"] for row in promises(found, there)}


def test_a_line_through_minutes_is_the_line_through_their_means():
    """Residuals of alternating sign are not alike, so all 30 minutes count: scipy's own regression."""
    from scipy.stats import linregress, t

    minute = HOUR // 60
    values = 100 + HOUR / 900 + np.where(minute % 2, 0.5, -0.5)
    fitted = trend(HOUR, values)
    late = slice(180, None)
    number = (HOUR[late] - HOUR[late][0]) // 60
    means = [
        [series[number == values].mean() for values in np.unique(number)]
        for series in (HOUR[late] / 3600, values[late])
    ]
    oracle = linregress(*means)
    half = t.ppf(0.975, len(means[0]) - 2) * oracle.stderr
    assert fitted.slope == pytest.approx(oracle.slope)
    assert (fitted.low, fitted.high) == pytest.approx((oracle.slope - half, oracle.slope + half))
    assert fitted.step == np.median(values[270:]) - np.median(values[90:180])


def test_alike_neighbours_widen_the_interval():
    independent, alike = trend(HOUR, noise(0.0)), trend(HOUR, noise(0.99))
    minutes = [noise(0.99)[start : start + 6].mean() for start in range(180, 360, 6)]
    assert alike.high - alike.low > 3 * np.std(minutes)
    assert independent.high - independent.low < alike.high - alike.low


def test_intervals_keep_what_they_promise():
    """Of 200 series with a trend of 0 the 95 % interval leaves it out in some 10; a leak is never flat."""
    series = [100 + noise(0.9, seed) for seed in range(200)]
    trends = [trend(HOUR, values) for values in series]
    assert 1 <= sum(not fitted.low <= 0 <= fitted.high for fitted in trends) <= 24
    leaks = [verdict(trend(HOUR, values + 20 * HOUR / 3600)) for values in series]
    assert leaks.count("flat") <= 2
    assert leaks.count("growing") >= 150


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.full(len(HOUR), 100.0), "flat"),
        (100 + 20 * (1 - np.exp(-HOUR / 200)), "flat"),  # caches that fill in the first minutes
        (100 + 12 * HOUR / 3600, "growing"),
        (100 + noise(0.0) * 60, "not decided"),
    ],
)
def test_verdicts_on_memory(values, expected):
    assert verdict(trend(HOUR, values)) == expected
    said = {"flat": "kept: ", "growing": "BROKEN: ", "not decided": "not decided: "}[expected]
    assert outcomes(watched(values))["memory is flat"].startswith(said)


def test_what_is_kept_of_a_submission_is_told():
    """12 MiB an hour and 14,400 submissions an hour: 0.833 MiB for a thousand."""
    said = outcomes(watched(100 + 12 * HOUR / 3600))["memory is flat"]
    assert "+12.00 MiB/h" in said
    assert "+0.833 MiB per 1,000 submissions" in said
    assert "last quarter minus second +6.00 MiB" in said


@pytest.mark.parametrize("count", [0, 1, 3, 60])
def test_too_few_samples_are_no_slope_but_a_reason(count):
    fitted = trend(HOUR[:count], HOUR[:count])
    assert np.isnan([fitted.slope, fitted.low, fitted.high]).all()
    assert fitted.reason
    assert verdict(fitted) == "not decided"
    assert count_verdict(HOUR[: min(count, 39)]) == "not decided"


def test_open_files_that_grow_are_found():
    result = watched(np.full(len(HOUR), 100.0))
    promise = "open files do not grow"
    assert outcomes(result)[promise] == "kept: medians of the quarters 40, 40, 40, 40"
    result.samples = [
        replace(one, files=40 + index // 30) for index, one in enumerate(result.samples)
    ]
    assert outcomes(result)[promise] == "BROKEN: medians of the quarters 41, 44, 47, 50"


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"lost": 1}, "every acknowledged submission is stored once"),
        ({"doubled": 1}, "every acknowledged submission is stored once"),
        ({"submissions": 0}, "every acknowledged submission is stored once"),
        ({"over": 1}, "no HIT exceeds its maximum assignments"),
        ({"judgments": 1779}, "every answer not rejected is in the judgments"),
        ({"available": "999622.61"}, "the balance is exact"),
        ({"held": "0.42"}, "the balance is exact"),
        ({"left": 2}, "completed HITs can be deleted"),
    ],
)
def test_each_broken_promise_is_called_broken(changes, promise):
    flat = watched(np.full(len(HOUR), 100.0))
    said = outcomes(flat, replace(GOOD, **changes))
    assert [name for name, text in said.items() if text.startswith("BROKEN")] == [promise]
    assert all(text.startswith("kept") for text in outcomes(flat).values())


def test_refusals_and_a_study_that_broke_off_are_told():
    flat = np.full(len(HOUR), 100.0)
    assert "BROKEN: 3 errors" in outcomes(watched(flat, errors=3)).values().__str__()
    said = outcomes(watched(flat), "Traceback:\nRuntimeError: the people ended")
    assert said["the study ends"] == "BROKEN: RuntimeError: the people ended"
    assert "the balance is exact" not in said


def test_quarters_share_out_everything():
    rows = quarters(watched(100 + HOUR / 3600))
    assert [row["quarter"] for row in rows] == [1, 2, 3, 4]
    assert sum(row["submissions"] for row in rows) == 4 * 3600
    assert sum(row["pages"] for row in rows) == 3599
    assert [row["RSS MiB"] for row in rows] == [[100.1], [100.4], [100.6], [100.9]]
    assert all(row["p50 ms"] == pytest.approx(49.5, abs=0.6) for row in rows)
    assert sum(row["CPU s"][0] for row in rows) == 360


def test_a_line_that_is_half_written_is_read_the_next_time(tmp_path):
    journal = tmp_path / "people.jsonl"
    assert read_entries(journal, 0) == ([], 0)
    journal.write_text('{"a": 1}\n{"b"')
    seen, read = read_entries(journal, 0)
    assert (seen, read) == ([{"a": 1}], 9)
    journal.write_text('{"a": 1}\n{"b": 2}\n')
    assert read_entries(journal, read) == ([{"b": 2}], 18)


def test_a_requester_goes_from_batch_to_batch_and_finds_what_is_lost(tmp_path):
    """A real service, its people simulated; what they were told is counted one by one, then falsified."""
    work = SoakPlan(hits=3, assignments=2, every=0.1, duration=60, rejected=0.2, bonused=0.5)
    truth = read_truth(DATA / "dialogues.jsonl")
    seen = Counter()
    with service(str(tmp_path / "hits.db"), 1, tmp_path) as site:
        requester = Requester(site, tmp_path, DATA, work)
        requester.round()
        for batches in (2, 3):
            done = simulate_workers(site, simulated_worker_ids(3), truth, Behaviour())
            seen += done.by_worker
            requester.round()  # reviews all, and begins the next batch
            assert len(requester.ledgers) == batches
        requester.finish()
        told = [{"worker": worker, "submitted": n} for worker, n in seen.items()]
        result = requester.final_state(told)
        less = requester.final_state([*told, {"worker": "ASIMULATED1", "submitted": 1}])
        more = requester.final_state(told[1:])
    assert (result.batches, result.hits, result.submissions, result.acknowledged) == (3, 9, 12, 12)
    assert (result.lost, result.unacknowledged, result.doubled, result.over, result.left) == (
        0,
    ) * 5
    assert result.approved + result.rejected == 12
    assert result.judgments == result.judgments_wanted == 2 * result.approved
    # a reward of 0.30 and its fee of 0.06; a bonus of 0.05 and its fee of 0.01
    spent = Decimal("0.36") * result.approved + Decimal("0.06") * result.bonuses
    assert result.bonuses > 0
    assert result.available == result.available_wanted == str(1_000_000 - spent)
    assert result.held == "0.00"
    assert (less.lost, more.unacknowledged) == (1, told[0]["submitted"])


@pytest.mark.nightly
def test_some_seconds_of_a_study(tmp_path, capsys):
    """All processes as in the hour; nobody abandons a HIT, which would take its 60 seconds to come back."""
    people = CrowdSettings(people=4, behaviour=Behaviour(pace=0.2, returns=0.1), mean_rest=0.5)
    work = SoakPlan(
        hits=2, assignments=2, every=0.5, duration=60, rejected=0.2, bonused=0.2, who=people
    )
    seen, result, notes = command.soak(4 / 60, ["SQLite"], work, every=1.0)
    told = document(seen, result, notes, "Output of a test.", work)
    there = result["SQLite"]
    assert isinstance(there, FinalState), there
    assert there.submissions == there.acknowledged > 0
    assert there.approved + there.rejected == there.submissions
    assert not has_broken_promise(told)
    assert told["minutes"] == pytest.approx(4 / 60, abs=0.2)
    rows = list(csv.DictReader(io.StringIO(samples_csv(seen[0].samples))))
    assert 1 <= len(rows) <= 4
    assert all(float(row["rss"]) > 20 and int(row["files"]) > 3 for row in rows)

    page, source = tmp_path / "page.md", tmp_path / "soak.json"
    page.write_text("# A\n\n<!-- soak: begin -->\n<!-- soak: end -->\n")
    source.write_text(json.dumps(told))
    command.main(["--from", str(source), "-o", str(page)])
    assert capsys.readouterr().out.strip() == block(told)
    assert "simulated study" in page.read_text()
    assert "every acknowledged submission is stored once" in page.read_text()
