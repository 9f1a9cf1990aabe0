"""Simulated judgments of people and of models, for tests."""

from dataclasses import replace

import numpy as np

from bws.design import make_tuples
from bws.records import Judgments
from bws.simulation import simulate


def design(groups=1, items=12, seed=3, k=4):
    """Return tuples of some groups, and the items' true scores."""
    ids = [f"{n:02}" for n in range(items)]
    names = [f"d{g:02}" if groups > 1 else "" for g in range(groups)]
    tuples = make_tuples([{"group": g, "item": i} for g in names for i in ids], k, seed=seed)
    return tuples, np.tile(np.linspace(-1, 1, items), groups)


def study(model_noise, *, runs=1, groups=1, items=12, seed=3, k=4, annotators=4, **options):
    """Return judgments of people, and of a model with random orders in each run."""
    tuples, truth = design(groups, items, seed, k)
    people = simulate(tuples, truth, annotators, noise=0.6, seed=seed)
    return people, as_model(
        simulate(tuples, truth, runs, noise=model_noise, seed=seed + 1, **options)
    )


def as_model(judgments, name="model:m@1", prompt="judge-en-1"):
    """Return the judgments of simulated annotators as the runs of a model."""
    run = np.array([str(number) for number in judgments.annotator_of], dtype=object)
    columns = {"prompt": np.full(len(run), prompt, dtype=object), "run": run}
    return replace(
        judgments,
        annotator_of=np.zeros(len(judgments), np.int32),
        annotators=np.array([name], dtype=object),
        columns={**judgments.columns, **columns},
    )


def together(*parts):
    """Return judgments of the same tuples together."""
    offsets = np.cumsum([0, *(len(part.annotators) for part in parts)])
    columns = set.intersection(*(set(part.columns) for part in parts))
    return Judgments(
        parts[0].tuples,
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("tuple_of", "best", "worst")
        ),
        np.concatenate(
            [part.annotator_of + offset for part, offset in zip(parts, offsets, strict=False)]
        ),
        np.concatenate([part.annotators for part in parts]),
        np.concatenate([part.shown for part in parts]),
        {name: np.concatenate([part.columns[name] for part in parts]) for name in columns},
    )
