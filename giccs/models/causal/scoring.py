"""Scoring of questions with the fastest forward pass that reproduces the model's own numbers, in batches.

Architectures differ in their support of masks, positions and caches, and some silently ignore unsupported
arguments. A forward pass is used only if its results for the largest questions equal those of single options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from giccs.models.causal.forward import Answer, Floats, ForwardPass, OneByOne, TreePass, ways
from giccs.models.causal.tokens import TokenTree
from giccs.models.checkpoint import first_line
from giccs.models.devices import free_memory, input_device, retry_out_of_memory
from giccs.models.generation import TOLERANCE
from giccs.models.model_errors import ModelFaultError, out_of_memory

TOKENS = {"cpu": 1024, "cuda": 16384}
"""Number of tokens per pass above which the time is dominated by arithmetic instead of reading the
weights."""
HALF_PRECISION_TOKENS = 4096
"""The same in half precision, in which large batches change more digits."""


def _last(tree: TokenTree) -> tuple[int, int]:
    """Return the last option in the tree, and the size of the tree."""
    option = max(range(len(tree.paths)), key=lambda option: tree.paths[option][-1])
    return option, len(tree)


def _last_option_gap(tree: TokenTree) -> tuple[int, int]:
    """Return the last option, and the number of tokens between it and its branching point."""
    option, size = _last(tree)
    return option, size - len(tree.paths[option])


def _longest(tree: TokenTree) -> tuple[int, int]:
    """Return the last of the longest options, and its length."""
    option = max(range(len(tree.paths)), key=lambda option: (len(tree.paths[option]), option))
    return option, len(tree.paths[option])


MEASURES = (_last, _last_option_gap, _longest)


class Trial:
    """Selection of the forward pass of a model, repeated for each question larger than the previous ones.

    Up to three options are tested: the last one of the largest tree, the one with most tokens between itself
    and its prompt, and the longest. Ignored masks or positions are detected by the first two, a window or
    chunked attention by the last two, or by all if these use positions.
    """

    def __init__(self, model: Any, dtype: str) -> None:
        self._alone = OneByOne(model)
        self._tolerance = TOLERANCE[dtype]
        self._ways = list(ways(model))
        self._tried = [-1] * len(MEASURES)
        self.deviation = 0.0
        """Largest difference of a token's ln p for the selected pass, in nats."""
        self.refused: dict[str, str] = {}
        """Name of a faster pass that is not used -> why."""

    @property
    def forward_pass(self) -> ForwardPass:
        """The fastest forward pass that has not failed."""
        return self._ways[0]

    def run(self, trees: Sequence[TokenTree]) -> dict[int, Answer]:
        """Select the forward pass for these questions; return the answers computed for the test."""
        checks = self._checks(trees)
        expected_logprobs = [
            self._alone.option(*_option(trees[index], option)) for index, option in checks
        ]
        answers: dict[int, Answer] = {}
        while checks and not isinstance(self.forward_pass, OneByOne):
            answers = {index: self._answer(trees[index]) for index in dict(checks)}
            pairs = zip(checks, expected_logprobs, strict=True)
            if all(self._agree(answers[checks], option, ln) for (checks, option), ln in pairs):
                break
            difference = f"differs from single options by {self.deviation:.2g} nats"
            self.refused.setdefault(self._ways.pop(0).name, difference)
            answers = {}
            self.deviation = 0.0
        if checks and isinstance(self.forward_pass, OneByOne):
            self._must_not_look_ahead(trees[checks[0][0]])
        return answers

    def _checks(self, trees: Sequence[TokenTree]) -> list[tuple[int, int]]:
        """Return (question, option) pairs to test; empty if all are smaller than those tested before."""
        index = []
        for n, measure in enumerate(MEASURES):
            check_index, option, size = max(
                ((index, *measure(tree)) for index, tree in enumerate(trees)),
                key=lambda one: one[2],
            )
            if size > self._tried[n]:
                self._tried[n] = size
                index.append((check_index, option))
        return list(dict.fromkeys(index))

    def _answer(self, tree: TokenTree) -> Answer:
        """Return the result of the forward pass; NaN if it raises an exception."""
        try:
            answer: Answer = retry_out_of_memory(lambda: self.forward_pass([tree])[0])
        except Exception as error:
            # Architectures without support for this pass raise various exceptions.
            self.refused[self.forward_pass.name] = first_line(error)
            return [np.full(len(option), np.nan) for option in tree.predictions]
        return answer

    def _agree(self, answer: Answer, option: int, expected: Floats) -> bool:
        difference = np.abs(answer[option] - expected)
        self.deviation = max(self.deviation, float(np.max(difference)))
        return bool(np.mean(difference) <= self._tolerance)

    def _must_not_look_ahead(self, tree: TokenTree) -> None:
        """Raise ModelFaultError if a later token changes the likelihood of an earlier one."""
        ids = max(tree.question.ids, key=len)
        start = max(1, len(ids) - 8)
        changed_ids = (*ids[:-2], ids[0] if ids[0] != ids[-2] else ids[0] + 1, ids[-1])
        before, after = (
            self._alone.option(sequence, start)[:-2] for sequence in (ids, changed_ids)
        )
        if np.mean(np.abs(before - after)) > self._tolerance:
            raise ModelFaultError(
                "attends to the tokens to be predicted; expected a causal language model"
            )


def _option(tree: TokenTree, option: int) -> tuple[tuple[int, ...], int]:
    return tree.question.ids[option], tree.question.start


class Scorer:
    """Runs questions through a model.

    In half precision, batch composition can change the third digit; in float32 there is no such effect. On a
    CPU, questions in half precision are therefore processed one at a time, unless the user specifies a batch
    size. On a GPU, which is then several times faster, the first and the last question of each larger batch
    are compared with the same questions alone, and the batch is halved where they differ by more than
    `TOLERANCE`.
    """

    def __init__(self, model: Any, dtype: str, batch_size: int | None) -> None:
        self.trial = Trial(model, dtype)
        device = input_device(model).type
        self._is_exact = dtype == "float32"
        on_device = TOKENS.get(device, TOKENS["cpu"])
        self._tokens = on_device if self._is_exact else HALF_PRECISION_TOKENS
        self._is_checked = not (self._is_exact or batch_size)
        self._questions = batch_size or (1 if self._is_checked and device == "cpu" else None)
        self._tolerance = TOLERANCE[dtype]
        self.batch_deviation = 0.0
        """Largest difference of a token's ln p between a batch and a single question, in nats."""
        self.largest = 1
        """Maximum number of questions in a forward pass so far."""

    @property
    def shares_prefixes(self) -> bool:
        """Whether adjacent questions may share the computation of a common prefix."""
        return self._is_exact or self._questions is None

    def run(self, trees: Sequence[TokenTree]) -> Iterator[tuple[int, Answer]]:
        """Yield (index of a question, ln p of each option's tokens), the largest questions first."""
        import torch

        order = sorted(range(len(trees)), key=lambda place: -len(trees[place]))
        with torch.inference_mode():
            trial_answers = self.trial.run(trees)
            yield from trial_answers.items()
            order = [index for index in order if index not in trial_answers]
            forward_pass = self.trial.forward_pass
            while order:
                batch_indices = self._next(order, trees, forward_pass)
                try:
                    answers = forward_pass([trees[index] for index in batch_indices])
                except (MemoryError, RuntimeError) as error:
                    self._less(error, len(batch_indices))
                    continue
                if not self._matches_single_questions(
                    [trees[index] for index in batch_indices], answers
                ):
                    self._questions = len(batch_indices) // 2
                    continue
                self.largest = max(self.largest, len(batch_indices))
                order = order[len(batch_indices) :]
                yield from zip(batch_indices, answers, strict=True)

    def _next(
        self, order: Sequence[int], trees: Sequence[TokenTree], forward_pass: ForwardPass
    ) -> list[int]:
        """Return the questions of the next pass; the first is the largest and determines the width."""
        if not isinstance(forward_pass, TreePass):
            return [order[0]]
        width = forward_pass.width(len(trees[order[0]]))
        return list(order[: self._questions or max(1, self._tokens // width)])

    def _matches_single_questions(
        self, trees: Sequence[TokenTree], answers: Sequence[Answer]
    ) -> bool:
        """Return whether the first and the last question of a larger batch have their numbers alone."""
        if not self._is_checked or len(trees) <= self.largest:
            return True
        for place in (0, -1):
            (alone,) = self.trial.forward_pass([trees[place]])
            pairs = zip(alone, answers[place], strict=True)
            difference = np.concatenate([np.abs(one - other) for one, other in pairs])
            if not np.mean(difference) <= self._tolerance:
                return False
            self.batch_deviation = max(self.batch_deviation, float(np.max(difference)))
        return True

    def _less(self, error: BaseException, questions: int) -> None:
        """Halve the batch size after a pass ran out of memory; raise an error for a single question."""
        if not out_of_memory(error):
            raise error
        if questions == 1:
            raise MemoryError("a single question does not fit into memory") from error
        self._questions = questions // 2
        free_memory()
