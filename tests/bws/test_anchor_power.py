"""How many anchors give which correlation over the items of all groups, in simulated studies."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from bws import cli
from bws.absolute.design import plan_anchors
from bws.absolute.files import Anchors
from bws.absolute.scores import absolute_scale
from bws.absolute.simulation import simulate_anchors
from bws.design import make_tuples
from bws.power_analysis import N_DRAWS, anchor_power
from bws.scoring import score
from bws.simulation import simulate


def design(n_groups=8):
    groups = [f"d{n}" for n in range(n_groups) for _ in "abcd"]
    return make_tuples([*"abcd"] * n_groups, 3, count=4, groups=groups)


@pytest.fixture(scope="module")
def study():
    tuples = design()
    return tuples, 3 * np.random.default_rng(1).standard_normal(len(tuples.items))


def in_order(keys, values, tuples):
    of_item = dict(zip(keys, values, strict=True))
    return [of_item[key] for key in tuples.item_keys]


def test_the_correlations_are_those_of_simulated_studies(study):
    """One study by the same functions, its correlation by numpy."""
    tuples, truth = study
    settings = {"noise": 1.0, "disagreement": 0.7}
    found = anchor_power(tuples, truth, 4, designs=["rating:2"], studies=2, seed=5, **settings)
    seed = int(np.random.Generator(np.random.PCG64(5)).integers(2**31, size=2)[1])
    judgments = simulate(tuples, truth, 4, seed=seed, **settings)
    plan = plan_anchors(tuples, "rating:2", seed=5)
    anchors = simulate_anchors(judgments, truth, plan, offset_sd=0.7, seed=seed, **settings)
    true = anchors.true_scores(is_rating=True)
    published, scale = (
        score(judgments),
        absolute_scale(judgments, Anchors(anchors.rows), draws=N_DRAWS),
    )
    for name, keys, values in (
        ("none", published.item_keys, published.score),
        ("rating:2", scale.keys, scale.score),
    ):
        r = np.corrcoef(in_order(keys, values, tuples), true)[0, 1]
        assert found.correlations[name].trials[1] == pytest.approx(r, abs=1e-9)
    assert found.answers == {"none": 0, "rating:2": 8 * 4 * 2}


def test_as_many_people_answer_the_anchors_as_judge_a_tuple(study):
    tuples, truth = study
    found = anchor_power(tuples, truth, 12, per_tuple=3, designs=["rating:2"], noise=1.0, studies=1)
    assert found.answers["rating:2"] == 8 * 3 * 2


def test_refused_anchors_are_counted(study):
    tuples, truth = study
    found = anchor_power(
        tuples, truth, 3, designs=["rating:1"], noise=1.0, slider_sd=300, studies=2, seed=1
    )
    n_refused = int(np.isnan(found.correlations["rating:1"].trials).sum())
    assert n_refused > 0
    assert (
        f"{n_refused} studies with rating:1 have no absolute scores, such as: the mean"
        in " ".join(found.table().split())
    )
    assert not math.isnan(found.correlations["none"].mean)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"studies": 0}, "0 studies of 8 groups"),
        ({"designs": ["rating:9"]}, "has 4 items; expected at least 9"),
        ({"designs": ["rating"]}, "expected rating:N, such as rating:2, or mark"),
        ({"noise": 0}, "expect|require"),
    ],
)
def test_what_cannot_be_simulated_is_refused(study, wrong, message):
    with pytest.raises(ValueError, match=message):
        anchor_power(*study, **wrong)


def test_the_command_prints_what_it_simulated(study, tmp_path):
    tuples, truth = study
    from bws.files import write_tuples

    write_tuples(tuples, tmp_path / "tuples.csv")
    rows = [
        f"{item},{group},{value}"
        for (group, item), value in zip(tuples.item_keys, truth, strict=True)
    ]
    (tmp_path / "truth.csv").write_text("item,group,score\n" + "\n".join(rows) + "\n", "utf-8")
    arguments = [
        str(tmp_path / "tuples.csv"),
        "--truth",
        str(tmp_path / "truth.csv"),
        "--noise",
        "1",
    ]
    arguments += [
        "--anchor-designs",
        "rating:1, mark",
        "--studies",
        "2",
        "--slider-sd",
        "3",
        "--seed",
        "4",
    ]
    arguments += ["-o", str(tmp_path / "simulated.csv")]
    done = CliRunner().invoke(cli.simulate, arguments)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()[2:5]] == [
        "none",
        "rating:1",
        "mark",
    ]
    assert "simulated, no results: 2 studies, seed 4" in done.stdout
    assert "slider noise 3 logits" in " ".join(done.stdout.split())
    document = json.loads(CliRunner().invoke(cli.simulate, [*arguments, "--json"]).stdout)
    found = document["anchor_designs"]
    assert [row["anchors"] for row in found["designs"]] == ["none", "rating:1", "mark"]
    assert (found["studies"], found["seed"], found["slider_sd"]) == (2, 4, 3.0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("offset_sd", "expected"),
    [
        (0.3, {"none": 0.812, "rating:2": 0.959, "mark": 0.955}),
        (0.7, {"none": 0.698, "rating:2": 0.968, "mark": 0.961}),
        (1.5, {"none": 0.474, "rating:2": 0.984, "mark": 0.964}),
    ],
)
def test_the_correlations_are_those_measured_before(offset_sd, expected):
    """Another program measured these in studies of this kind, in 2 to 20 of them."""
    groups = [f"d{n:03}" for n in range(60) for _ in "abcde"]
    tuples = make_tuples([*"abcde"] * 60, 3, count=10, groups=groups)
    truth = 3 * np.random.default_rng(49).standard_normal(300)
    found = anchor_power(
        tuples, truth, designs=["rating:2", "mark"], noise=1.0, disagreement=0.7, offset_sd=offset_sd,
        studies=5,
    )  # fmt: skip
    for name, r in expected.items():
        assert found.correlations[name].mean == pytest.approx(
            r, abs=0.04 if name == "none" else 0.02
        )
