"""Sections of the acceptance table: each simulates studies from seeds and returns a Markdown table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.adaptive.studies import K, Setting, Study, correlation, each_fit_once, spearman
from bws.adaptive import fit, next_round, stopping
from bws.adaptive.stop import watched_factor
from bws.design import extend_tuples, make_tuples
from bws.files import read_judgments
from bws.scoring import score, utilities
from bws.simulation import simulate
from bws.stats.clusters import t_quantile

Runner = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]]
"""Calls a function with each tuple of arguments, in parallel."""
ROUNDS = 14
"""Rounds of N/2 tuples after the warm-up: at most 8 judgments per item."""
NOISES = ("gumbel", "thurstone", "t3", "uneven")


def _markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return str(tabulate(rows, header, "github", disable_numparse=True))


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


# --- judgments for equal scores -----------------------------------------------------------------------------


def _curves(setting: Setting, seed: int) -> tuple[list[float], list[float], list[float]]:
    """Return Spearman's rho with the truth after each round: adaptive, fresh, counting by annotators."""
    size = setting.items // 2
    results = []
    for way in ("adaptive", "fresh"):
        study = Study(setting, seed)
        with each_fit_once():
            rounds = getattr(study, way)(ROUNDS, size)
            results.append([spearman(study.fit().utility, study.truth) for _ in rounds])
    study = Study(setting, seed)
    counted = [spearman(scores, study.truth) for _, scores in study.counting(4)]
    return results[0], results[1], counted


def savings(run: Runner, studies: int) -> str:
    """Compare judgments per item at equal rho: that of counting or of fresh tuples with 8 per item."""
    cells: list[tuple[Setting, float, float | None]]
    cells = [(Setting(n), 0.25, 0.55) for n in (100, 300, 1000)]
    cells += [(Setting(300, noise=noise), 0.20, None) for noise in NOISES[1:]]
    cells += [(Setting(300, sd=1.5), 0.10, None)]
    rows = []
    per_item = 1 + 0.5 * np.arange(ROUNDS + 1)
    for setting, over_fresh, over_counting in cells:
        curves = run(_curves, [(setting, seed) for seed in range(studies)])
        adaptive, fresh, counted = (np.mean([c[i] for c in curves], axis=0) for i in range(3))
        for_counting, for_fresh = np.interp([counted[3], fresh[-1]], adaptive, per_item)
        fresh_for_counting = float(np.interp(counted[3], fresh, per_item))
        saved_counting, saved = 1 - for_counting / 8, 1 - for_fresh / 8
        worst = float((fresh - adaptive).max())
        reached = saved >= over_fresh and (over_counting is None or saved_counting >= over_counting)
        rows.append(
            (setting.items, f"{setting.sd:g}", setting.noise, studies, f"{counted[3]:.3f}",
             f"{fresh_for_counting:.1f}", f"{for_counting:.1f}", f"{saved_counting:.0%}",
             "" if over_counting is None else f"{over_counting:.0%}", f"{fresh[-1]:.3f}", f"{for_fresh:.1f}",
             f"{saved:.0%}", f"{over_fresh:.0%}", f"{worst:+.3f}", _verdict(reached))
        )  # fmt: skip
    header = (
        "items", "SD", "noise", "studies", "rho of counting, 8 per item", "fresh needs", "adaptive needs",
        "saved", "goal", "rho of fresh, 8 per item", "adaptive needs", "saved", "goal",
        "largest loss of rho", "",
    )  # fmt: skip
    return _markdown(header, rows)


# --- the end of a study -------------------------------------------------------------------------------------


def _stop(
    setting: Setting, targets: Sequence[float], rounds: int, seed: int
) -> list[tuple[float, float, float]]:
    """Return per target: judgments per item at the end (NaN: never), true and claimed correlation there."""
    study = Study(setting, seed)
    left, ends = dict.fromkeys(targets), {}

    def truth_and_claim() -> tuple[float, float]:
        return correlation(study.fit().scores(), study.true_scores()), evidence.claimed

    with each_fit_once():
        for count in study.adaptive(rounds, setting.items // 2):
            judgments = study.judgments
            evidence = stopping(judgments, judgments.tuples, min(left), seed=seed)
            low, passed = evidence.gates[0].figure, all(gate.passed for gate in evidence.gates[1:])
            for target in [target for target in left if passed and low >= target]:
                ends[target] = (count / setting.items, *truth_and_claim())
                del left[target]
            if not left:
                break
        at_budget = (float("nan"), *truth_and_claim())
    return [ends.get(target, at_budget) for target in targets]


def stops(run: Runner, studies: int) -> str:
    """Measure the true correlation where the gates end a study."""
    targets = (0.95, 0.97)
    cells = [Setting(100, noise=noise) for noise in NOISES]
    cells += [Setting(300, noise=noise) for noise in NOISES] + [Setting(100, sd=1.5)]
    rows = []
    for setting in cells:
        ended = run(_stop, [(setting, targets, 26, seed) for seed in range(studies)])
        for index, target in enumerate(targets):
            values = np.array([study[index] for study in ended])
            stopped = ~np.isnan(values[:, 0])
            true = values[stopped, 1]
            missed = float((true < target - 0.005).mean()) if len(true) else 0.0
            error = np.sqrt(0.05 * 0.95 / max(len(true), 1))
            ends = (
                (f"{values[stopped, 0].mean():.1f}", f"{true.mean():.3f}")
                if len(true)
                else ("", "")
            )
            rows.append(
                (setting.items, f"{setting.sd:g}", setting.noise, studies, target, f"{stopped.mean():.0%}",
                 *ends, f"{missed:.1%}", _verdict(missed <= 0.05 + 2 * error))
            )  # fmt: skip
    header = (
        "items", "SD", "noise", "studies", "target", "ended", "judgments per item", "true r",
        "below target - .005", "",
    )  # fmt: skip
    return _markdown(header, rows)


def no_signal(run: Runner, studies: int) -> str:
    """Measure claims where there is little or nothing to find."""
    rows = []
    for sd, goal in ((0.0, "claim at most .3, never ends"), (0.3, "claim - truth at most .03")):
        setting = Setting(100, sd=sd)
        ended = run(_stop, [(setting, (0.95,), 14, seed) for seed in range(studies)])
        values = np.array([study[0] for study in ended])
        claimed, true = values[:, 2].mean(), np.nanmean(values[:, 1]) if sd else float("nan")
        stopped = (~np.isnan(values[:, 0])).mean()
        reached = claimed <= 0.3 and not stopped if not sd else claimed - true <= 0.03
        rows.append(
            (f"{sd:g}", studies, f"{claimed:.3f}", "" if true != true else f"{true:.3f}",
             f"{stopped:.0%}", goal, _verdict(bool(reached)))
        )  # fmt: skip
    header = ("SD", "studies", "claimed r", "true r", "ended", "goal", "")
    return _markdown(header, rows)


# --- intervals of items -------------------------------------------------------------------------------------


def _intervals(seed: int) -> tuple[float, float]:
    """Return the share of items in fixed-n intervals at the end, and in watched intervals in all rounds."""
    study = Study(Setting(100), seed)
    centred = study.truth - study.truth.mean()
    always = np.ones(100, dtype=bool)
    fixed = 0.0
    for count in study.adaptive(8, 50):
        if count < 200:
            continue
        judgments = study.judgments
        fitted = utilities(judgments, "best-worst-logit", cluster="annotator", seed=seed)
        order = np.argsort(judgments.tuples.items)
        appearances = np.bincount(judgments.tuples.members.ravel(), minlength=100)
        assert fitted.stderr is not None
        assert (order == np.arange(100)).all()
        error = np.abs(fitted.utility - centred)
        assert fitted.df is not None
        always &= error <= watched_factor(appearances, fitted.df) * fitted.stderr
        fixed = float((error <= t_quantile(fitted.df) * fitted.stderr).mean())
    return fixed, float(always.mean())


def intervals(run: Runner, studies: int) -> str:
    """Measure the coverage of the intervals of items' utilities."""
    shares = np.array(run(_intervals, [(seed,) for seed in range(studies)]))
    mean, error = shares.mean(axis=0), shares.std(axis=0) / np.sqrt(studies)
    rows = [
        ("after the last round, ± t se", f"{mean[0]:.1%}", f"{error[0]:.1%}", "93–97 %",
         _verdict(bool(abs(mean[0] - 0.95) <= 0.02 + 2 * error[0]))),
        ("in all of 7 rounds, watched", f"{mean[1]:.1%}", f"{error[1]:.1%}", "at least 95 %",
         _verdict(bool(mean[1] >= 0.95 - 2 * error[1]))),
    ]  # fmt: skip
    return _markdown(("intervals", "coverage", "±", "goal", ""), rows)


# --- new items, speed, real judgments -----------------------------------------------------------------------


def _new_items(seed: int) -> tuple[float, float]:
    """Return the slope of the old items' utilities, and their largest move in standard errors (mean)."""
    study = Study(Setting(120), seed)
    names, truth = study.names, study.truth
    study.names, study.setting = names[:100], replace(study.setting, items=100)
    study.truth = truth[:100]
    for _ in study.adaptive(8, 50):
        pass
    before = study.fit()
    assert study.design is not None
    longer = extend_tuples(study.design, names[100:], seed=seed)
    done = len(study.design)
    added = replace(
        longer, ids=longer.ids[done:], members=longer.members[done:],
        columns={name: column[done:] for name, column in longer.columns.items()},
    )  # fmt: skip
    study.truth = truth
    study.judge(added)
    after = study.fit()
    old = after.utility[:100] - after.utility[:100].mean()
    centred = before.utility - before.utility.mean()
    se = np.sqrt(np.linalg.inv(before.hessian.toarray()).diagonal())
    slope = float(np.cov(old, centred)[0, 1] / centred.var(ddof=1))
    return slope, float((np.abs(old - centred) < se).mean())


def new_items(run: Runner, studies: int) -> str:
    """Measure how old scores move when 20 % new items are added."""
    values = np.array(run(_new_items, [(seed,) for seed in range(studies)]))
    slope, within = values.mean(axis=0)
    rows = [
        ("slope of old utilities, after on before", f"{slope:.3f}", "1 ± .02",
         _verdict(abs(slope - 1) <= 0.02)),
        ("old items that move by less than 1 SE", f"{within:.1%}", "all", _verdict(within >= 0.995)),
    ]  # fmt: skip
    return _markdown(("20 % new items half-way", "value", "goal", ""), rows)


def speed(run: Runner, studies: int) -> str:
    """Measure the time of a round: fit, draw and choice."""
    rows = []
    for n, goal in ((1_000, ""), (10_000, "5 s"), (100_000, "60 s")):
        design = make_tuples([f"i{i:06}" for i in range(n)], K, factor=1)
        truth = 2.75 * np.random.default_rng(0).standard_normal(n)
        judgments = simulate(design, truth, 1, noise=1.0)
        start = time.process_time()
        next_round(judgments, design, n // 2)
        took = time.process_time() - start
        reached = not goal or took < float(goal.split()[0])
        rows.append((f"{n:,}", f"{took:.2f} s", goal, _verdict(reached) if goal else ""))
    return _markdown(("items", "CPU time of a round", "goal", ""), rows)


def real(run: Runner, studies: int) -> str:
    """Predict half of the real Hindi judgments from the tuples of the other half."""
    path = Path(os.environ.get("GICCS_SHARED", "../shared")) / "data" / "semrel2024" / "hi_dev.csv"
    if not path.exists():
        return f"Not measured: {path.name} of SemRel 2024 is missing."
    judgments = read_judgments(path)
    per_tuple = np.nanmean([_predictions(judgments, seed) for seed in range(20)], axis=0)
    mean, n = float(per_tuple.mean()), len(per_tuple)
    rng = np.random.default_rng(0)
    resampled = per_tuple[rng.integers(n, size=(2000, n))].mean(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    rows = [
        ("rightly ordered pairs, model minus counting", f"{mean:+.2%}", f"[{low:+.2%}, {high:+.2%}]",
         _verdict(low > 0))
    ]  # fmt: skip
    return _markdown(
        ("hi_dev, 300 of 600 tuples predict the others", "difference", "95 % interval", ""), rows
    )


def _predictions(judgments: Any, seed: int) -> Any:
    """Return (T,) differences in rightly ordered pairs, model minus counting; NaN for training tuples."""
    tuples = judgments.tuples
    order = np.random.default_rng(seed).permutation(len(tuples))
    is_training = np.zeros(len(tuples), dtype=bool)
    is_training[order[: len(tuples) // 2]] = True
    known = judgments.select(is_training[judgments.tuple_of])
    model = fit(tuples, known).utility
    counted = np.nan_to_num(score(known).score)
    shares = []
    for scores in (model, counted):
        values = scores[tuples.members[judgments.tuple_of]]
        rows = np.arange(len(judgments))
        best, worst = values[rows, judgments.best][:, None], values[rows, judgments.worst][:, None]
        right = (np.sign(best - values) + np.sign(values - worst)) / 2
        # best - best and worst - worst are 0; best - worst occurs in both terms and counts once
        total = right.sum(axis=1) - np.sign(best - worst)[:, 0] / 2
        shares.append(total / (2 * K - 3))
    difference = shares[0] - shares[1]
    count = np.bincount(judgments.tuple_of, minlength=len(tuples))
    mean = np.bincount(judgments.tuple_of, difference, len(tuples)) / count
    return np.where(is_training, np.nan, mean / 2)  # (sign + 1) / 2: shares of right pairs


SECTIONS: dict[str, Callable[[Runner, int], str]] = {
    "savings": savings,
    "stops": stops,
    "no-signal": no_signal,
    "intervals": intervals,
    "new-items": new_items,
    "speed": speed,
    "real": real,
}
