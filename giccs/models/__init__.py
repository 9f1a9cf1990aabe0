"""Models by name. Each backend imports its framework itself, and only once it is used.

baseline:chance          encoder:FOLDER or encoder:HUB-ID       package:NAME
causal:FOLDER, causal:HUB-ID or causal:FILE.gguf
FOLDER, HUB-ID or FILE.gguf     the kind follows from the model's own configuration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models.causal import CausalModel

__all__ = ["KINDS", "ModelOptions", "PairModel", "open_model"]

KINDS = ("baseline", "causal", "encoder", "package")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to open and run a model."""

    revision: str | None = None
    """Branch, tag or commit of a hub id; None is its main branch."""
    device: str = "auto"
    """``auto`` takes a GPU where there is one."""
    dtype: str = "auto"
    """``auto`` is the type in which the weights were saved."""
    batch_size: int | None = None
    """None: grows until memory or gain ends."""
    seed: int = 0
    offline: bool = False
    """Never ask the hub; use what its cache holds."""
    trust_remote_code: bool = False


class PairModel(Protocol):
    """A model that says how similar two texts are."""

    @property
    def name(self) -> str:
        """As the user called it."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What its predictions depend on; known before the weights are loaded."""
        ...

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair, higher for more similar; NaN where there is none."""
        ...

    def environment(self) -> Mapping[str, Any]:
        """Return with what it ran: versions, device, batch size."""
        ...


def open_model(name: str, options: ModelOptions | None = None) -> PairModel | CausalModel:
    """Return the model called `name`; nothing is loaded yet.

    Raises InputError with one sentence on what to do where the model cannot be had.

    >>> open_model("baseline:char-ngram").identity["kind"]
    'baseline'
    """
    options = options or ModelOptions()
    kind, colon, rest = name.partition(":")
    if not colon or kind not in KINDS:
        kind, rest = "encoder", name
    if kind == "baseline":
        from giccs.models.baseline import open_baseline

        return open_baseline(name, rest, options.seed)
    if kind == "package":
        from giccs.models.packaged import open_packaged

        return open_packaged(name, rest, options)
    if not rest:
        raise InputError(
            Problem(name, None, f"names no model; write {kind}:FOLDER or {kind}:HUB-ID")
        )
    if kind == "causal":
        from giccs.models.causal import open_causal

        return open_causal(name, options, place=rest)
    return _by_configuration(name, rest, options, forced=bool(colon))


def _by_configuration(
    name: str, place: str, options: ModelOptions, *, forced: bool
) -> PairModel | CausalModel:
    """Return an encoder, or the causal model that `place` holds where the user did not say encoder."""
    from giccs.models.folder import holds_causal, located

    path = located(place, options.revision, offline=options.offline)
    if not forced and holds_causal(path):
        from giccs.models.causal import open_causal

        return open_causal(name, options, place=str(path))
    from giccs.models.sentence import SentenceModel, encoder_folder

    return SentenceModel(name, encoder_folder(name, path, options), options)
