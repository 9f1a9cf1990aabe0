"""Models by name. Each backend imports its framework itself, and only once it is used.

baseline:chance          encoder:FOLDER or encoder:HUB-ID       package:NAME
causal:FOLDER, causal:HUB-ID or causal:FILE.gguf                seq2seq:FOLDER or seq2seq:HUB-ID
static:FILE              word vectors
chat:NAME                on an OpenAI-compatible server, which writes answers
completions:NAME         on such a server, which says how likely the tokens of a text are
FOLDER, HUB-ID or FILE.gguf     the kind follows from the model's own configuration; also what giccs-csts
                                train made, which is for the task csts
MODEL+STEP               vectors by another way (words, first-last) or changed (whitening, abtt, pcr, flow)

What a model can do is told by its methods: ``pair_scores`` (how similar texts are), ``vectors``, ``score``
(how likely an option is after a prompt), ``generate`` (what follows a prompt).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.placing import refuse_map
from giccs.models.quantising import refuse_quantising
from giccs.progress import Progress

__all__ = ["KINDS", "ModelOptions", "PairModel", "open_model"]

KINDS = ("baseline", "causal", "chat", "completions", "encoder", "package", "seq2seq", "static")
WITHOUT_WEIGHTS = ("baseline", "chat", "completions", "static")
"""Kinds of which transformers loads no weights here."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to open and run a model."""

    revision: str | None = None
    """Branch, tag or commit of a hub id; None is its main branch."""
    device: str = "auto"
    """``auto`` takes a GPU where there is one."""
    device_map: str | None = None
    """How weights are spread over devices: a word of Accelerate's, or a JSON file; None: as there is room."""
    dtype: str = "auto"
    """``auto`` is the type in which the weights were saved."""
    quantise: str | None = None
    """``4bit`` or ``8bit``; None is as the weights were saved."""
    batch_size: int | None = None
    """None: grows until memory or gain ends."""
    seed: int = 0
    offline: bool = False
    """Never ask the hub; use what its cache holds."""
    trust_remote_code: bool = False
    base_url: str | None = None
    """Server of a ``chat`` or ``completions`` model; None is ``OPENAI_BASE_URL``, or OpenAI's own."""
    price: tuple[float, float] | None = None
    """US dollars for a million tokens read, and written, of such a model."""
    concurrency: int = 8
    """Requests to a server at a time."""


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


def open_model(name: str, options: ModelOptions | None = None) -> Any:
    """Return the model called `name`; nothing is loaded yet.

    Raises InputError with one sentence on what to do where the model cannot be had.

    >>> open_model("baseline:char-ngram").identity["kind"]
    'baseline'
    """
    options = options or ModelOptions()
    if "+" not in name:
        return _opened(name, options)
    from giccs.models.postprocess import split_steps, wrapped

    base, steps = split_steps(name)
    model = _opened(base, options)
    for step in steps:
        model = wrapped(model, step, options.seed)
    return model


def _opened(name: str, options: ModelOptions) -> Any:
    kind, colon, rest = name.partition(":")
    if not colon or kind not in KINDS:
        kind, rest = "", name
    if kind in WITHOUT_WEIGHTS:
        refuse_map(name, options)
        refuse_quantising(name, options)
    if kind == "baseline":
        from giccs.models.baseline import open_baseline

        return open_baseline(name, rest, options.seed)
    if kind == "package":
        from giccs.models.packaged import open_packaged

        return open_packaged(name, rest, options)
    if not rest:
        raise InputError(Problem(name, None, f"names no model; write {kind}:{_called(kind)}"))
    if kind == "static":
        from giccs.models.static import open_static

        return open_static(name, rest, options)
    if kind == "chat":
        from giccs.models.chat import open_chat

        return open_chat(name, rest, options)
    if kind == "completions":
        from giccs.models.completions import open_completions

        return open_completions(name, rest, options)
    return _in_folder(kind, name, rest, options)


def _called(kind: str) -> str:
    return {"static": "FILE", "chat": "NAME", "completions": "NAME"}.get(
        kind, f"FOLDER or {kind}:HUB-ID"
    )


def _in_folder(kind: str, name: str, place: str, options: ModelOptions) -> Any:
    """Return the model of a folder or hub id; of the kind that it says, where none is given."""
    from giccs.models.folder import holds_causal, holds_seq2seq, located

    path = None if kind == "causal" else located(place, options.revision, offline=options.offline)
    if path is None or (not kind and holds_causal(path)):
        from giccs.models.causal import open_causal

        return open_causal(name, options, place=str(path or place))
    if kind == "seq2seq" or (not kind and holds_seq2seq(path)):
        from giccs.models.seq2seq import open_seq2seq

        return open_seq2seq(name, path, options)
    from giccs.models.sentence import SentenceModel, encoder_folder
    from giccs.models.trained import TrainedModel, trained_settings

    if (settings := trained_settings(path)) is not None:
        return TrainedModel(name, path, settings, options)
    return SentenceModel(name, encoder_folder(name, path, options), options)
