"""robustness.scale: its arithmetic, its fit, and that docs/operations/scale.md is what it prints."""

import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from bws.problems import InputError
from robustness.scale.assumptions import (
    Assumptions,
    HardwareAssumptions,
    ModelClass,
    StudyAssumptions,
    read_assumptions,
)
from robustness.scale.costs import Projection, load, study_cost, sweep
from robustness.scale.measurements import DESIGNS, Measurements, growth
from robustness.scale.tables import BLOCKS, assumptions_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations" / "scale.md"
SIZES = (100, 1_000, 10_000)


def proportional(*names):
    return {n: {name: float(n) for name in names} for n in SIZES}


@pytest.fixture
def paper():
    """Assumptions, and measurements in which a unit of work costs a unit of everything."""
    result = Measurements(
        files=proportional(
            "design s", "design MiB", "write tuples s", "write judgments s", "tuples B",
            "judgments B", "read judgments s", "count s", "count MiB", "reliability s", "reliability MiB",
        ),
        plan=proportional("plan s", "plan MiB", "ledger s", "ledger MiB", "ledger B"),
        judged=proportional("keep s", "judge s", "judge MiB", "assignment B"),
        studied=proportional(
            "publish s", "publish service s", "publish B", "work s", "work service s", "work B", "collect s",
            "collect service s", "nothing new s", "nothing new service s", "requests",
        ),
        requests=proportional("list", "accept", "show", "submit", "count"),
        heavy=dict.fromkeys(("list", "accept", "show", "submit", "count"), 1.0),
        postgresql={},
        encoding=proportional("encode s"),
        store=proportional("result B", "sign ms", "find ms", "miss ms", "add ms"),
        report=proportional("read s", "table s"),
        tokens={"dialogues": 60, "items": 300, "texts": 360, "shared": 3e5, "apart": 9e5,
                "distinct": 3e4, "columns": 6e4},
        reliability=dict.fromkeys(DESIGNS, 0.9),
    )  # fmt: skip
    return Projection(Assumptions(), result)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_fit_finds_the_exponent(exponent):
    cost_growth = growth({n: 7 * n**exponent for n in SIZES})
    assert cost_growth.exponent == pytest.approx(exponent, abs=1e-12)
    assert cost_growth.error == pytest.approx(0, abs=1e-7)


def test_the_error_of_the_exponent_is_that_of_least_squares():
    # logarithms to base 10: sizes 0, 1, 2 and costs 0, 2, 2 -> slope 1, residuals -1/3, 2/3, -1/3,
    # so that the error is the root of (6/9) / (3 - 2) / 2
    cost_growth = growth({1: 1.0, 10: 100.0, 100: 100.0})
    assert cost_growth.exponent == pytest.approx(1)
    assert cost_growth.error == pytest.approx(math.sqrt(1 / 3))
    assert math.isnan(growth({1: 1.0, 10: 100.0}).error)


def test_costs_go_on_along_the_last_line():
    cost_growth = growth({10: 50.0, 100: 60.0, 200: 80.0})
    assert (cost_growth.rate, cost_growth.at(1_000), cost_growth.reaches(140)) == (
        0.2,
        240.0,
        500.0,
    )
    assert growth({1: 5.0, 2: 5.0}).reaches(9) == math.inf
    with pytest.raises(ValueError, match="two sizes"):
        growth({1: 1.0})


def test_the_papers_own_study():
    # 60 dialogues x 10 tuples, five annotations each; two tuples a HIT; 0.30 and 0.06 an assignment
    cost = study_cost(
        StudyAssumptions(items=300, workers=10, reward=Decimal("0.30"), seconds=60, hours_a_week=1)
    )
    assert (cost.tuples, cost.judgments, cost.hits, cost.assignments) == (
        600,
        3_000,
        300,
        1_500,
    )
    assert (cost.rewards, cost.fees, cost.total) == (Decimal(450), Decimal(90), Decimal(540))
    assert (cost.hours, cost.hours_each, cost.weeks, cost.wage) == (25, 2.5, 2.5, Decimal(18))


def test_a_million_items_and_ten_annotations():
    cost = study_cost(StudyAssumptions(annotations=10))
    assert (cost.hits, cost.assignments) == (1_000_000, 10_000_000)
    assert cost.fees == cost.rewards * Decimal("0.4")  # twice the rate from ten assignments on
    few = study_cost(StudyAssumptions(tuples_an_item=1.5))
    assert few.tuples == 1_600_000  # 8 a dialogue: 7.5 are rounded as the design rounds them


def test_requests_and_processes():
    service_load = load(StudyAssumptions(workers=1_000, seconds=50), 4.0, 0.03)
    assert (service_load.submissions, service_load.requests) == (20.0, 80.0)
    assert service_load.capacity == pytest.approx(33.3, abs=0.1)
    assert service_load.processes == 2  # 20 a second, and each is to be busy for half of its 33


def test_gpu_hours():
    # 70e9 parameters are 140 GB, with some room 168: two GPUs of 141; 2 x 70e9 x 1e9 operations at 3e14
    hardware = HardwareAssumptions(
        peak_tflops=1_000, utilisation=0.3, disk_gb_a_second=2, start_seconds=20
    )
    sweep_cost = sweep(ModelClass("causal", 70, 3), 1e9, hardware)
    assert sweep_cost.gpus == 2
    assert sweep_cost.compute == pytest.approx(3 * 1.4e20 / 3e14 / 3600)
    assert sweep_cost.loading == pytest.approx(3 * 2 * (20 + 70) / 3600)


def test_sharing_is_worth_its_tokens(paper):
    shared, separate = paper.sweeps(300), paper.sweeps(300, shared=False)
    ratios = {m.kind: b.compute / a.compute
              for m, a, b in zip(paper.assumptions.models, shared, separate, strict=True)}  # fmt: skip
    assert ratios == {"causal": pytest.approx(3), "encoder": pytest.approx(2)}
    assert paper.sweeps(600)[0].compute == pytest.approx(2 * shared[0].compute)


def test_storage_is_bytes_times_pieces(paper):
    small = replace(paper, assumptions=replace(paper.assumptions, study=StudyAssumptions(items=5)))
    # a byte a submission of publishing are five a HIT of five; five HITs, 25 assignments
    assert small.storage == {
        "service: HITs": 25, "service: assignments": 25, "ledger: HITs": 5, "ledger: assignments": 25,
        "tuples file": 5, "judgments file": 5,
    }  # fmt: skip


def test_every_block_of_the_document_is_one_of_the_command(paper):
    text = DOCUMENT.read_text(encoding="utf-8")
    assert re.findall(r"<!-- (\S+): begin -->", text) == list(BLOCKS)
    assert re.findall(r"<!-- (\S+): end -->", text) == list(BLOCKS)
    for block in BLOCKS.values():
        assert block(paper)
    outside = re.sub(r"(?s)<!-- (\S+): begin -->.*?<!-- \1: end -->", "", text)
    assert "Output of" not in outside


def test_the_document_has_the_assumptions_of_the_code():
    result = re.search(
        r"(?s)<!-- scale-assumptions: begin -->(.*?)<!-- scale-assumptions: end -->",
        DOCUMENT.read_text(encoding="utf-8"),
    )
    assert assumptions_table(Assumptions()) in result[1]


def test_thousand_models():
    assert sum(models.count for models in Assumptions().models) == 1_000


def test_assumptions_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        '[study]\nitems = 500\nreward = "0.10"\n[[models]]\nkind = "causal"\nparameters = 7\ncount = 2\n'
    )
    result = read_assumptions(file)
    assert (result.study.items, result.study.reward) == (500, Decimal("0.10"))
    assert result.study.workers == StudyAssumptions().workers
    assert result.models == (ModelClass("causal", 7, 2),)


def test_every_fault_of_a_file_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        '[study]\nitem = 5\n[hardware]\nutilisation = 0\n[[models]]\nkind = "diffusion"\nparameters = 1\n'
        "count = 1\n[other]\n"
    )
    with pytest.raises(InputError) as caught:
        read_assumptions(file)
    message = str(caught.value)
    for part in ("item is unknown", "utilisation is 0", "diffusion", "other is unknown"):
        assert part in message
