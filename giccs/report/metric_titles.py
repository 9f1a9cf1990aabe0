"""The titles of metrics in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "rank_spearman": "ρ within dialogues",
    "spearman_target_first": "Spearman ρ, target first",
    "spearman_candidate_first": "Spearman ρ, candidate first",
    "order_difference": "rank difference",
    "accuracy": "accuracy",
    "pair_accuracy": "pairwise ordering accuracy",
    "invalid": "invalid answers",
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
}


def metric_title(metric: str) -> str:
    """Return the title of a metric; its name if it has none.

    >>> metric_title("spearman"), metric_title("f1")
    ('Spearman ρ', 'f1')
    """
    return TITLES.get(metric, metric)
