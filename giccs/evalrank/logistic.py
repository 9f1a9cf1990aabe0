"""How well can classes be read off vectors? Logistic regression, its cost chosen without the test rows.

The way of SentEval (Conneau and Kiela 2018): a set without parts is cross-validated, the cost C of each fold
chosen by folds inside its training rows; a set with training and test rows has C chosen by folds of the
training rows; a set with dev rows has C chosen on these. Ties go to the smallest C.

Where it differs, and why:
- Vectors are standardised, by the mean and deviation of the rows that are fitted, never of those that are
  tested. SentEval takes them as they are, so that C punishes a model whose vectors are short and
  spares one whose are long; here multiplying all vectors by a number changes nothing.
- Ten outer and five inner folds, the paper's program five and five, with a network of no hidden layer
  trained by mini-batches and early stopping in the place of the convex problem's one solution.
- Nothing is fitted to dev rows after C is chosen; likewise in SentEval.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COSTS", "FOLDS", "INNER_FOLDS", "Learner", "too_few_reason"]

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]
Split = tuple[Ints, Ints]
"""Rows to fit, rows to check."""

COSTS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""C of scikit-learn: the smaller, the more large weights are punished."""
FOLDS = 10
INNER_FOLDS = 5
MAX_ITERATIONS = 2000


class Learner:
    """Vectors (N, D) and classes (N,), of which some rows are learnt and others predicted."""

    def __init__(self, vectors: Floats, classes: Sequence[str], seed: int = 0) -> None:
        self.vectors = vectors
        self.names, self.classes = np.unique(np.asarray(classes), return_inverse=True)
        self.seed = seed
        self.n_unconverged = 0
        """Fits that ended before they were done, so far."""

    def cross_validate(self) -> tuple[list[str], list[int], list[float]]:
        """Return the class predicted for each row from the other folds, the row's fold, and each fold's C."""
        predictions, fold = np.zeros(len(self.classes), np.intp), np.zeros(len(self.classes), int)
        costs = []
        all_rows = np.arange(len(self.classes))
        for fold_index, (train, test) in enumerate(self.folds(all_rows, FOLDS)):
            costs.append(self.choose_cost(self.folds(train, INNER_FOLDS)))
            predictions[test], fold[test] = self.predict(train, test, costs[-1]), fold_index
        return self._class_names(predictions), fold.tolist(), costs

    def predict_test(self, train: Ints, dev: Ints, test: Ints) -> tuple[list[str], float]:
        """Return the class predicted for each test row, and C: chosen on dev rows, or else by inner folds."""
        splits = [(train, dev)] if len(dev) else self.folds(train, INNER_FOLDS)
        cost = self.choose_cost(splits)
        return self._class_names(self.predict(train, test, cost)), cost

    def folds(self, rows: Ints, n: int) -> list[Split]:
        """Return `n` stratified folds of rows, fewer where a class has fewer."""
        from sklearn.model_selection import StratifiedKFold

        n = min(n, *np.bincount(self.classes[rows])[np.unique(self.classes[rows])].tolist())
        division = StratifiedKFold(n, shuffle=True, random_state=self.seed)
        return [
            (rows[train], rows[test]) for train, test in division.split(rows, self.classes[rows])
        ]

    def choose_cost(self, splits: Sequence[Split]) -> float:
        """Return the C with most right answers over all splits, the smallest of such."""
        n_correct = np.zeros(len(COSTS), int)
        for train, check in splits:
            n_correct += [
                int(np.count_nonzero(predictions == self.classes[check]))
                for predictions in self._predict_per_cost(train, check)
            ]
        return COSTS[int(np.argmax(n_correct))]

    def predict(self, train: Ints, test: Ints, cost: float) -> Ints:
        """Return the classes of `test` after learning `train`."""
        scale, model = _fit_scaler(self.vectors[train]), _make_regression(cost)
        self._fit(model, scale(self.vectors[train]), train)
        return np.asarray(model.predict(scale(self.vectors[test])))

    def _predict_per_cost(self, train: Ints, check: Ints) -> Iterator[Ints]:
        """Yield the answers under each C; each fit begins where the one before ended."""
        scale, model = _fit_scaler(self.vectors[train]), _make_regression(COSTS[0])
        model.set_params(warm_start=True)
        train_vectors, check_vectors = scale(self.vectors[train]), scale(self.vectors[check])
        for cost in COSTS:
            self._fit(model.set_params(C=cost), train_vectors, train)
            yield np.asarray(model.predict(check_vectors))

    def _fit(self, model: Any, vectors: Floats, train: Ints) -> None:
        """Fit, and count where scikit-learn warns that it did not get to the end."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            model.fit(vectors, self.classes[train])
        convergence_warnings = [
            warning
            for warning in caught_warnings
            if issubclass(warning.category, ConvergenceWarning)
        ]
        self.n_unconverged += len(convergence_warnings)
        for one in caught_warnings:
            if one not in convergence_warnings:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

    def _class_names(self, classes: Ints) -> list[str]:
        return [str(name) for name in self.names[classes]]


def too_few_reason(classes: Sequence[str], *, folds: bool = True) -> str:
    """Return why nothing can be learnt from rows of these classes; empty where something can.

    folds: whether they are divided into folds, and these again.

    >>> too_few_reason(["a", "a", "a", "b"])
    'class b has 1 rows to learn from; cross-validation needs three'
    """
    names, counts = np.unique(np.asarray(classes), return_counts=True)
    if len(names) < 2:
        return f"{len(names)} classes to learn; there must be two"
    rarest = int(np.argmin(counts))
    if counts[rarest] >= 3 or not folds:
        return ""
    return f"class {names[rarest]} has {counts[rarest]} rows to learn from; cross-validation needs three"


def _fit_scaler(vectors: Floats) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit(vectors).transform


def _make_regression(cost: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=cost, max_iter=MAX_ITERATIONS)
