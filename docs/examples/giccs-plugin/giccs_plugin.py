"""A kind of model and a task for giccs, in a package of its own."""

from itertools import groupby

import numpy as np

from giccs.benchmark import SAMPLE, read_benchmark
from giccs.measures.metrics import interval_signature, mean_over_dialogues
from giccs.measures.results import TaskOutput
from giccs.models.abilities import PairModel
from giccs.tasks import ResultKind, TaskKind
from giccs.tasks.refusals import missing_ability_reason


class WordOverlap(PairModel):
    """Words that two texts share, divided by all words: ``words:jaccard``."""

    def __init__(self, name):
        self.name = name
        self.identity = {"kind": "words", "revision": "1"}  # Everything that determines its scores.

    def environment(self):
        """Return nothing: no framework is used."""
        return {}

    def pair_scores(self, left, right, progress):
        """Return the similarity of each pair of texts."""
        pairs = [({*a.split()}, {*b.split()}) for a, b in zip(left, right, strict=True)]
        return np.array([len(a & b) / len(a | b) for a, b in pairs])


def open_words(name, location, options):
    """Return the model ``words:LOCATION``."""
    return WordOverlap(name)


class TopCandidate:
    """Share of dialogues in which the model finds the candidate with the highest score."""

    name = "top-candidate"
    default_data = SAMPLE
    read = staticmethod(read_benchmark)

    def __init__(self, seed):
        self.seed = seed

    def refuses(self, model):
        """Return why the model is unsuitable, or an empty string."""
        return missing_ability_reason(model, PairModel, self.name)

    def parameters(self, model, benchmark):
        """Return the settings that determine the metrics, for the signature."""
        return {"interval": interval_signature("dialogue", 1000, self.seed)}

    def measure(self, model, benchmark, progress):
        """Run the model on every pair."""
        items = benchmark.items
        left, right = [item.last_turn for item in items], [item.utterance for item in items]
        predicted = zip(items, model.pair_scores(left, right, progress), strict=True)
        found = []
        for _, dialogue in groupby(predicted, key=lambda pair: pair[0].dialogue_id):
            candidates = list(dialogue)
            best = max(candidates, key=lambda pair: pair[1])[0]
            found.append(best.score == max(item.score for item, _ in candidates))
        accuracy = mean_over_dialogues(np.array(found, dtype=float), bounds=(0, 1), seed=self.seed)
        return TaskOutput({"accuracy": accuracy}, environment=benchmark.provenance())


TOP_CANDIDATE = TaskKind(
    lambda options: [TopCandidate(options.seed)], results=ResultKind("metrics", "accuracy")
)
