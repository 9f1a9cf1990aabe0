"""Evaluation of language models: do they judge whether two utterances mean the same in a conversation?

All names are imported on first use, so that `import giccs` is fast. `bws` contains best-worst scaling.

>>> import giccs
>>> results = giccs.evaluate("baseline:char-ngram", "giccs-sample")
>>> round(results[0].metrics["spearman"].value, 2)
0.19
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bws.base.problems import InputError
    from giccs.benchmark import Benchmark
    from giccs.benchmark import read_benchmark as load_benchmark
    from giccs.evaluation.training_evaluator import PairwiseSTSEvaluator
    from giccs.interface import Comparison, Results, compare, evaluate, judge, noise_ceiling
    from giccs.tasks import register_task

    __version__: str

__all__ = [
    "Benchmark",
    "Comparison",
    "InputError",
    "PairwiseSTSEvaluator",
    "Results",
    "__version__",
    "compare",
    "evaluate",
    "judge",
    "load_benchmark",
    "noise_ceiling",
    "register_task",
]

_EXPORTS = {
    "Benchmark": "giccs.benchmark:Benchmark",
    "Comparison": "giccs.interface:Comparison",
    "InputError": "bws.base.problems:InputError",
    "PairwiseSTSEvaluator": "giccs.evaluation.training_evaluator:PairwiseSTSEvaluator",
    "Results": "giccs.interface:Results",
    "compare": "giccs.interface:compare",
    "evaluate": "giccs.interface:evaluate",
    "judge": "giccs.interface:judge",
    "load_benchmark": "giccs.benchmark:read_benchmark",
    "noise_ceiling": "giccs.interface:noise_ceiling",
    "register_task": "giccs.tasks:register_task",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'giccs' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("giccs")
    else:
        module, _, attribute = _EXPORTS[name].partition(":")
        value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
