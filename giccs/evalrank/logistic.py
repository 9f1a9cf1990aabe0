"""Logistic regression on vectors, with C selected without the test rows.

The procedure follows SentEval (Conneau and Kiela 2018). Sets without splits are cross-validated, and C is
selected for each fold by cross-validation within its training rows. For sets with training and test rows, C
is selected by cross-validation within the training rows; for sets with dev rows, on these. Ties are resolved
in favour of the smallest C.

Differences from SentEval and the published program:
- Vectors are standardised with the mean and standard deviation of the rows used for fitting. SentEval uses
  raw vectors, so the effect of C depends on their norms; here, results are invariant to scaling.
- There are ten outer and five inner folds. The published program uses five and five, and replaces the unique
  solution of the convex problem with a network without hidden layers, trained with early stopping.
- As in SentEval, the model is not refitted to the dev rows after the selection of C.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]
Split = tuple[Ints, Ints]
"""Rows for fitting and rows for validation."""

COSTS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of C in scikit-learn; smaller values mean stronger regularisation."""
FOLDS = 10
INNER_FOLDS = 5
MAX_ITERATIONS = 2000


class Learner:
    """Logistic regression on vectors (N, D) with classes (N,), fitted to some rows and applied to others."""

    def __init__(self, vectors: Floats, classes: Sequence[str], seed: int = 0) -> None:
        self.vectors = vectors
        self.names, self.classes = np.unique(np.asarray(classes), return_inverse=True)
        self.seed = seed
        self.n_unconverged = 0
        """Number of fits so far that did not converge."""

    def cross_validate(self) -> tuple[list[str], list[int], list[float]]:
        """Return the class predicted for each row by the other folds, the fold of each row, and C per
        fold."""
        predictions, fold = np.zeros(len(self.classes), np.intp), np.zeros(len(self.classes), int)
        costs = []
        all_rows = np.arange(len(self.classes))
        for fold_index, (train, test) in enumerate(self.folds(all_rows, FOLDS)):
            costs.append(self.choose_cost(self.folds(train, INNER_FOLDS)))
            predictions[test], fold[test] = self.predict(train, test, costs[-1]), fold_index
        return self._class_names(predictions), fold.tolist(), costs

    def predict_test(self, train: Ints, dev: Ints, test: Ints) -> tuple[list[str], float]:
        """Return the class predicted for each test row, and C, selected on dev rows or by inner folds."""
        splits = [(train, dev)] if len(dev) else self.folds(train, INNER_FOLDS)
        cost = self.choose_cost(splits)
        return self._class_names(self.predict(train, test, cost)), cost

    def folds(self, rows: Ints, n: int) -> list[Split]:
        """Return `n` stratified folds of rows, or fewer if a class has fewer rows."""
        from sklearn.model_selection import StratifiedKFold

        n = min(n, *np.bincount(self.classes[rows])[np.unique(self.classes[rows])].tolist())
        division = StratifiedKFold(n, shuffle=True, random_state=self.seed)
        return [
            (rows[train], rows[test]) for train, test in division.split(rows, self.classes[rows])
        ]

    def choose_cost(self, splits: Sequence[Split]) -> float:
        """Return the C with the most correct predictions over all splits; the smallest in case of a tie."""
        n_correct = np.zeros(len(COSTS), int)
        for train, check in splits:
            n_correct += [
                int(np.count_nonzero(predictions == self.classes[check]))
                for predictions in self._predict_per_cost(train, check)
            ]
        return COSTS[int(np.argmax(n_correct))]

    def predict(self, train: Ints, test: Ints, cost: float) -> Ints:
        """Return the predicted classes of `test` after fitting to `train`."""
        scale, model = _fit_scaler(self.vectors[train]), _make_regression(cost)
        self._fit(model, scale(self.vectors[train]), train)
        return np.asarray(model.predict(scale(self.vectors[test])))

    def _predict_per_cost(self, train: Ints, check: Ints) -> Iterator[Ints]:
        """Yield the predictions for each C; each fit starts from the previous solution."""
        scale, model = _fit_scaler(self.vectors[train]), _make_regression(COSTS[0])
        model.set_params(warm_start=True)
        train_vectors, check_vectors = scale(self.vectors[train]), scale(self.vectors[check])
        for cost in COSTS:
            self._fit(model.set_params(C=cost), train_vectors, train)
            yield np.asarray(model.predict(check_vectors))

    def _fit(self, model: Any, vectors: Floats, train: Ints) -> None:
        """Fit the model and count convergence warnings of scikit-learn."""
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
        for caught in caught_warnings:
            if caught not in convergence_warnings:
                warnings.warn_explicit(
                    caught.message, caught.category, caught.filename, caught.lineno
                )

    def _class_names(self, classes: Ints) -> list[str]:
        return [str(name) for name in self.names[classes]]


def too_few_reason(classes: Sequence[str], *, folds: bool = True) -> str:
    """Return why no classifier can be fitted to rows of these classes, or an empty string.

    folds: whether nested cross-validation is used.

    >>> too_few_reason(["a", "a", "a", "b"])
    'class b has 1 training rows; cross-validation requires 3'
    """
    names, counts = np.unique(np.asarray(classes), return_counts=True)
    if len(names) < 2:
        return note("{n:d} classes in the training rows; expected at least 2", n=len(names))
    rarest = int(np.argmin(counts))
    if counts[rarest] >= 3 or not folds:
        return ""
    return note(
        "class {label} has {n:d} training rows; cross-validation requires 3",
        label=names[rarest],
        n=counts[rarest],
    )


def _fit_scaler(vectors: Floats) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit(vectors).transform


def _make_regression(cost: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=cost, max_iter=MAX_ITERATIONS)
