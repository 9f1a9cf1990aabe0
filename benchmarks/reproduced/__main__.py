"""Published values, reproduced.

    python -m benchmarks.reproduced FOLDER [-o docs/background/reproduced.md | --check PAGE] [--set NAME]

FOLDER contains the files of the recipes, which are not part of this project. With -o the sentence and the
tables replace the blocks `reproduced-result` and `reproduced` of a document. With --check values are compared
with those of a page; if a value or a state changed, the changes are printed and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import provenance, replace_block
from benchmarks.reproduced.page import changes, parsed, summary, tables
from benchmarks.reproduced.recipes import RECIPES
from benchmarks.reproduced.values import Outcome, Recipe, State, outcome_of


def computed(recipes: Sequence[Recipe], folder: Path) -> list[Outcome]:
    """Compute the values of recipes; print the time of each."""
    outcomes = []
    for recipe in recipes:
        start = time.monotonic()
        outcomes.append(outcome_of(recipe, folder))
        print(f"{recipe.data_set}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return outcomes


def main(arguments: list[str] | None = None, recipes: Sequence[Recipe] = RECIPES) -> None:
    """Compute the values and print the page, write it, or compare it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduced")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--set", action="append", metavar="NAME", help="only sets with this text")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    output.add_argument("--check", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder; expected the folder of the data")
    if options.output and options.set:
        parser.error("-o writes all sets; expected no --set")
    wanted = options.set or [""]
    for name in wanted:
        if recipes and not any(name in recipe.data_set for recipe in recipes):
            parser.error(f"--set: no set contains {name!r}; see the titles of the page")
    recipes = [recipe for recipe in recipes if any(name in recipe.data_set for name in wanted)]
    start = time.monotonic()
    outcomes = computed(recipes, options.folder)
    line = f"{provenance('make reproduce')} {time.monotonic() - start:.0f} s."
    if options.check:
        _check(options.check, outcomes, is_whole=not options.set)
        return
    text = f"{tables(outcomes)}\n\n{line}"
    print(f"{summary(outcomes)}\n\n{text}")
    if options.output:
        replace_block(options.output, "reproduced-result", summary(outcomes))
        replace_block(options.output, "reproduced", text)


def _check(page: Path, outcomes: Sequence[Outcome], *, is_whole: bool) -> None:
    """Print how values differ from a page; exit with 1 if they do.

    is_whole: whether all sets were computed; then the sets of the page are compared, too,
    and its sentence, if the same data are missing.
    """
    text = page.read_text(encoding="utf-8")
    rows = parsed(text)
    found = changes(rows, outcomes)
    missing = {outcome.recipe.data_set for outcome in outcomes if outcome.missing}
    if is_whole:
        names = [outcome.recipe.data_set for outcome in outcomes]
        sets = dict.fromkeys(data_set for data_set, _ in rows)
        found += [f"{name}: only on the page" for name in sets if name not in names]
        is_same_data = missing == {
            key[0] for key, cells in rows.items() if cells[3] == State.MISSING
        }
        if is_same_data and summary(outcomes) not in text:
            found.append(f"the page has another sentence, now: {summary(outcomes)}")
    skipped = [outcome.recipe.data_set for outcome in outcomes if outcome.missing]
    if skipped:
        print(f"not compared, data not here: {'; '.join(dict.fromkeys(skipped))}")
    n = sum(len(outcome.rows) for outcome in outcomes if not outcome.missing)
    print("\n".join(found) or f"{n} values as on the page")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
