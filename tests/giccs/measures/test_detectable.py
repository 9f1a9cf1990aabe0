"""Power and sample sizes, against noncentral distributions and tosses of coins."""

import math

import numpy as np
import pytest
from scipy import stats

from giccs.measures.comparison import mcnemar
from giccs.measures.detectable import (
    _critical,
    dialogues_needed,
    mcnemar_detectable,
    mcnemar_power,
    questions_needed,
    t_detectable,
)


def t_power(difference, stderr, dialogues, alpha=0.05):
    df = dialogues - 1
    return stats.nct.sf(stats.t.ppf(1 - alpha / 2, df), df, difference / stderr)


@pytest.mark.parametrize("dialogues", [10, 30, 200])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 45])
def test_the_detectable_difference_is_found_with_power_80(dialogues, alpha):
    difference = t_detectable(0.03, dialogues, alpha=alpha)
    assert t_power(difference, 0.03, dialogues, alpha) == pytest.approx(0.8, abs=0.02)


def test_the_fewest_dialogues_are_planned():
    per_dialogue = 0.5
    needed = dialogues_needed(per_dialogue / math.sqrt(60), 60, 0.1)
    assert t_power(0.1, per_dialogue / math.sqrt(needed), needed) == pytest.approx(0.8, abs=0.01)
    smallest = [t_detectable(per_dialogue / math.sqrt(n), n) for n in (needed - 1, needed)]
    assert smallest[0] > 0.1 >= smallest[1]
    assert dialogues_needed(0.001, 60, 0.9) == 5  # an interval needs five


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 45, 0.05 / 5000, 0.3])
def test_critical_counts_are_those_of_the_exact_test(alpha):
    for tosses, critical in enumerate(_critical(150, alpha)):
        rejecting = [c for c in range(tosses // 2 + 1) if mcnemar(c, tosses - c) <= alpha]
        assert critical == max(rejecting, default=-1)


def test_the_power_of_mcnemar_is_that_of_simulated_questions():
    rng = np.random.default_rng(0)
    for n, discordant, difference in ((100, 0.3, 0.15), (60, 0.2, 0.2), (400, 0.4, 0.1)):
        shares = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
        counts = rng.multinomial(n, shares, size=4000)
        share = np.mean([b > c and mcnemar(b, c) <= 0.05 for b, c, _ in counts])
        assert mcnemar_power(n, discordant, difference) == pytest.approx(share, abs=0.025)


def test_questions_and_detectable_differences_agree():
    needed = questions_needed(0.3, 0.1)
    assert mcnemar_power(needed, 0.3, 0.1) >= 0.8 > mcnemar_power(needed - 1, 0.3, 0.1)
    assert mcnemar_detectable(needed, 0.3) == pytest.approx(0.1, abs=0.001)
    assert math.isnan(mcnemar_detectable(5, 0.2))  # five questions never reach p < .05
    assert math.isnan(questions_needed(0.3, 0.0001))
