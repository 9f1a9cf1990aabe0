"""Remarks on a model and a data set, on standard error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bws.base.commands import Console
from bws.base.problems import Problem

if TYPE_CHECKING:
    from giccs.measures.results import Result


class Remarks:
    """Notes and warnings about results, each printed once per model, or per model and data set."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._done: set[tuple[str, str]] = set()

    def print_for(self, result: Result) -> None:
        """Print the weights that the model did not use, the share of unknown tokens if it is large, and the
        numbers of inputs that are too long."""
        from giccs.measures.results import history_of
        from giccs.models.vocabulary import TokenCounts

        environment: Mapping[str, Any] = result.environment
        unused = environment.get("unused_weights")
        if unused and self._is_first(result.model, ""):
            self._console.note(f"{result.model}: weights: {unused}")
        data = str(environment.get("data", ""))
        counts = TokenCounts(**environment.get("tokens", {}))
        setting = f"{data}, history {history}" if (history := history_of(result)) else data
        warnings = {
            ("unknown tokens", data): counts.unknown_warning(),
            ("long inputs", setting): counts.length_warning(),
        }
        for (kind, location), warning in warnings.items():
            if warning and self._is_first(result.model, f"{kind} {location}"):
                self._console.warn([Problem(result.model, None, f"{location}: {warning}")])

    def _is_first(self, model: str, data: str) -> bool:
        is_first = (model, data) not in self._done
        self._done.add((model, data))
        return is_first


@contextmanager
def unknown_token_warning(console: Console, model: str, data: str) -> Iterator[None]:
    """Warn after the block if many of the tokens are unknown to the model."""
    from giccs.models.vocabulary import counted_tokens

    with counted_tokens() as counts:
        yield
    if warning := counts.warning():
        console.warn([Problem(model, None, f"{data}: {warning}")])
