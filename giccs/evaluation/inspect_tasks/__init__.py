"""Task of inspect_ai: ``inspect eval giccs/multiple_choice_sts --model MODEL``.

inspect_ai finds this package by its entry point and evaluates chat models of any provider.
"""

from giccs.evaluation.inspect_tasks.tasks import multiple_choice_sts

__all__ = ["multiple_choice_sts"]
