"""An adaptive study in the explorer, the HTML report, the dataset card and the noise ceiling."""

import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.adaptive import fit, join_rounds, next_round, stopping
from bws.design import fresh_rounds
from bws.files import read_judgments, write_judgments
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.cli.card import card
from giccs.measures.ceiling import noise_ceiling
from giccs_app.explorer.labels import plain, text_of
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.report.html import write_page
from giccs_app.report.inputs import Inputs

ROUNDS = 4
NOISE = 0.3

CHECKS_CHARTS = True


def truth_of(design):
    """Return the true scores in the order of the design's items."""
    truth = np.random.default_rng(4).uniform(-1, 1, 24)
    return truth[[int(item[1:]) for item in design.items]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dialogue of 24 candidates, judged in four rounds of different simulated annotators."""
    names = [f"u{n:02}" for n in range(24)]
    design = fresh_rounds(names, 4, 1, factor=1, groups=["d"] * 24)
    judged = [bws.simulate(design, truth_of(design), 1, noise=NOISE)]
    for number in range(2, ROUNDS + 1):
        chosen = next_round(together(design, judged), design, 24)
        judged.append(bws.simulate(chosen, truth_of(chosen), 1, noise=NOISE, seed=number))
        design = join_rounds([design, chosen])
    judgments = together(design, judged)
    folder = tmp_path_factory.mktemp("adaptive")
    write_judgments(judgments, folder / "judgments.csv")
    scores = bws.score(judgments, "best-worst-logit", scale="counting")
    turns = (Turn("A", "Hello."), Turn("B", "Could you turn it up?"))
    items = [
        Item(name, "d", "s", "x", turns, name, f"text {name}", round((score + 1) / 2, 4), language="en")
        for name, score in zip(scores.items, scores.score, strict=True)
    ]  # fmt: skip
    write_benchmark(items, folder / "benchmark.jsonl")
    return folder


def together(design, judged):
    """Return the judgments of all rounds, each round by an annotator of its own."""
    return replace(
        judged[0],
        tuples=design,
        tuple_of=np.arange(len(design), dtype=np.int32),
        best=np.concatenate([part.best for part in judged]),
        worst=np.concatenate([part.worst for part in judged]),
        annotator_of=np.repeat(np.arange(len(judged)), 24).astype(np.int32),
        annotators=np.array([f"simulated-{n}" for n in range(len(judged))], dtype=object),
        shown=None,
        columns=design.columns,
    )


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ("overview", "en"),
        ("annotation", "de"),
        pytest.param("overview", "de", marks=pytest.mark.nightly),
        pytest.param("annotation", "en", marks=pytest.mark.nightly),
    ],
)
def test_explorer_shows_the_evidence_instead_of_reliability(opened, folder, page, language):
    files = ("--data", folder / "benchmark.jsonl", "--judgments", folder / "judgments.csv")
    app = opened(*files, page=page, lang=language)
    assert not app.error
    assert not app.warning
    texts = [element.value for kind in ("markdown", "subheader") for element in app.get(kind)]
    assert any(text_of(f"{page}.stopping", language) in text for text in texts)
    assert not any("Krippendorff" in text for text in texts)
    evidence = stopping(read_judgments(folder / "judgments.csv"))
    captions = [caption.value for caption in app.caption]
    assert plain(local_remark(evidence.summary, language)) in captions
    assert plain(local_remark(evidence.verdict, language)) in captions


def test_report_has_the_evidence_and_its_command(folder):
    page = folder / "report.html"
    inputs = Inputs(folder, simulated=True, metadata_file="benchmark.jsonl")
    write_page(inputs, page)
    text = page.read_text("utf-8")
    evidence = stopping(read_judgments(folder / "judgments.csv"))
    assert "Adaptive study" in text
    assert evidence.summary in text
    assert "<span>giccs</span> <span>stop</span>" in text
    assert "Scores are those of a choice model in [0, 1]" in text
    assert f'<td class="sentence">{evidence.gates[2].sentence}</td>' in text
    assert "Split-half reliability" not in text


def test_card_has_the_evidence_and_publishes_the_rounds(folder, tmp_path):
    arguments = [folder / "benchmark.jsonl", "--judgments", folder / "judgments.csv"]
    result = CliRunner().invoke(card, [*map(str, arguments), "-o", str(tmp_path / "card")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "card" / "README.md").read_text("utf-8")
    assert "The study was adaptive" in text
    assert "expected counting score" in text
    assert "(counting, Orme 2009" not in text
    assert "### End of the adaptive study" in text
    assert "Split-half" not in text
    import polars as pl

    published = pl.read_parquet(tmp_path / "card" / "data" / "judgments-00000-of-00001.parquet")
    published.write_csv(tmp_path / "published.csv")
    again = stopping(read_judgments(tmp_path / "published.csv"))
    assert again.document() == stopping(read_judgments(folder / "judgments.csv")).document()


def test_ceiling_is_the_correlation_with_the_true_scores(folder):
    """On average over studies; a single one deviates by chance."""
    judgments = read_judgments(folder / "judgments.csv")
    ceiling = noise_ceiling(judgments, read_benchmark(folder / "benchmark.jsonl"))["pearson"]
    assert (ceiling.extra["method"], ceiling.extra["scale"]) == ("best-worst-logit", "counting")
    truth = truth_of(judgments.tuples)
    fitted = fit(judgments.tuples, judgments)
    true_scores = replace(fitted, utility=truth / NOISE).scores()
    actual = np.corrcoef(fitted.scores(), true_scores)[0, 1]
    assert ceiling.value == pytest.approx(actual, abs=0.02)


def test_ceiling_of_one_annotator_is_undefined_with_the_reason(folder):
    judgments = read_judgments(folder / "judgments.csv")
    alone = replace(judgments, annotator_of=np.zeros_like(judgments.annotator_of))
    ceiling = noise_ceiling(alone, read_benchmark(folder / "benchmark.jsonl"))["pearson"]
    assert math.isnan(ceiling.value)
    assert "no item was judged by two annotators" in ceiling.reason
