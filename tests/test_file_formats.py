"""The example of each file format is read by its reader, and the page shows what is in it."""

import re
from pathlib import Path

import pytest

from bws import read_items, read_judgments, read_scores, read_tuples
from bws.files.soft_targets import read_soft_targets
from giccs.benchmark import read_benchmark
from giccs.benchmark.assemble import read_dialogues
from giccs.csts.data import read_csts
from giccs.description.card.stated import read_stated
from giccs.evaluation.recipe import read_recipe
from giccs.evaluation.sweep import read_sweep

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
EXAMPLES = REFERENCE / "examples"
PAGE = (REFERENCE / "files.md").read_text("utf-8")
ITEMS = [f"d{dialogue}-{candidate}" for dialogue in range(1, 9) for candidate in "abcd"]


def read_studies(path):
    pytest.importorskip("starlette", reason="needs the extra study")
    from mturk.service.site.studies import read_studies

    return read_studies(str(path))


def read_contents(path):
    from mturk.kinds.items.content import read_contents

    return read_contents(str(path))


def read_settings(path):
    from mturk.study.settings_file import read_settings

    return read_settings(path)


READ = {
    "benchmark.jsonl": lambda path: sorted(item.item_id for item in read_benchmark(path).items),
    "card.toml": lambda path: read_stated(path) is not None,
    "csts.csv": lambda path: len(read_csts(path).instances),
    "dialogues.jsonl": lambda path: [
        candidate.utterance_id for one in read_dialogues(path) for candidate in one.candidates
    ],
    "items.csv": lambda path: [item for _, item in read_contents(path)],
    "items.txt": lambda path: len(read_items(path)[0]),
    "judgments.csv": lambda path: len(list(read_judgments(path).records())),
    "recipe.toml": lambda path: read_recipe(path).title,
    "scores.csv": lambda path: sorted(read_scores(path).items),
    "settings.toml": lambda path: read_settings(path).assignments,
    "sheet.csv": lambda path: path.read_text("utf-8").count("\n"),
    "soft-targets.csv": lambda path: read_soft_targets(path) is not None,
    "studies.toml": lambda path: len(read_studies(path)),
    "sweep.toml": lambda path: len(read_sweep(path)),
    "truth.csv": lambda path: sorted(read_scores(path).items),
    "tuples.csv": lambda path: len(list(read_tuples(path).rows())),
}
FOUND = {
    "benchmark.jsonl": ITEMS, "card.toml": True, "csts.csv": 4, "dialogues.jsonl": ITEMS,
    "items.csv": ["kite", "moat", "storm", "train"], "items.txt": 5,
    "judgments.csv": 160, "recipe.toml": "The demo of giccs", "scores.csv": ITEMS, "settings.toml": 3,
    "sheet.csv": 9, "soft-targets.csv": True, "studies.toml": 1, "sweep.toml": 1, "truth.csv": ITEMS,
    "tuples.csv": 32,
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_the_example_is_read(path):
    assert READ[path.name](path) == FOUND[path.name]
    assert f"[{path.name}](examples/{path.name})" in PAGE


def test_the_page_shows_lines_of_the_examples():
    lines = {line for path in EXAMPLES.iterdir() for line in path.read_text("utf-8").splitlines()}
    shown = re.findall(r"^```(?:csv|json|toml)\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(shown) >= 6
    assert [line for block in shown for line in block.splitlines() if line not in lines] == []


def test_the_spreadsheet_is_the_one_of_the_quickstart():
    quickstart = (REFERENCE.parent / "quickstart.md").read_text("utf-8")
    assert (
        re.sub("^(?=.)", "> ", (EXAMPLES / "sheet.csv").read_text("utf-8"), flags=re.M)
        in quickstart
    )
