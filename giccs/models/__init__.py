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
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bws.options import MAX_COUNT, check_options, option
from bws.problems import InputError, Problem
from giccs.models.folder import DTYPES
from giccs.models.placing import refuse_map
from giccs.models.quantising import KINDS as QUANTISATIONS
from giccs.models.quantising import refuse_quantising
from giccs.progress import Progress

__all__ = ["KINDS", "Kind", "ModelOptions", "PairModel", "kinds", "open_model"]

ANY_KIND = "giccs.models.located:open_any"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of models: what opens the model called ``KIND:PLACE``."""

    opener: str
    """``module:function``, called with the whole name, the place and the `ModelOptions`; imported late."""
    place: str = ""
    """What is written after the colon, for messages; empty: the opener says it."""
    has_weights: bool = True
    """Whether transformers loads weights here, which can be quantised and spread over devices."""


KINDS = {
    "baseline": Kind("giccs.models.baseline:open_baseline", has_weights=False),
    "causal": Kind("giccs.models.located:open_causal_model", "FOLDER or causal:HUB-ID"),
    "chat": Kind("giccs.models.chat:open_chat", "NAME", has_weights=False),
    "completions": Kind("giccs.models.completions:open_completions", "NAME", has_weights=False),
    "encoder": Kind("giccs.models.located:open_encoder", "FOLDER or encoder:HUB-ID"),
    "package": Kind("giccs.models.packaged:open_packaged"),
    "seq2seq": Kind("giccs.models.located:open_encoder_decoder", "FOLDER or seq2seq:HUB-ID"),
    "static": Kind("giccs.models.static:open_static", "FILE", has_weights=False),
}


@cache
def kinds() -> Mapping[str, Kind]:
    """Return `KINDS`, and those that other packages name as entry points of the group ``giccs.models``."""
    others = {point.name: Kind(point.value) for point in entry_points(group="giccs.models")}
    return KINDS | others


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to open and run a model."""

    batch_size: int | None = option(
        None,
        "Texts at a time; auto grows until memory or gain ends.",
        bounds=(1, MAX_COUNT),
        expects=f"a number from 1 to {MAX_COUNT}",
        none="auto",
        metavar="auto|N",
    )
    device: str = option(
        "auto",
        "Where the model runs; auto takes a GPU where there is one.",
        pattern="auto|cpu|mps|cuda(:[0-9]{1,3})?",
        expects="auto, cpu, cuda, cuda:N or mps",
        metavar="auto|cpu|cuda[:N]|mps",
    )
    device_map: str | None = option(
        None,
        "Spread a large model over GPUs, main memory and disk: auto, balanced, balanced_low_0, "
        "sequential, or parts of the model and their devices from a JSON file.",
        metavar="MAP|FILE",
    )
    dtype: str = option("auto", "Type of the weights; auto as saved.", choices=("auto", *DTYPES))
    quantise: str | None = option(
        None, "Make weights smaller as they are loaded.  [default: as saved]", choices=QUANTISATIONS
    )
    revision: str | None = option(None, "Branch, tag or commit of a hub id.", metavar="REV")
    offline: bool = option(False, "Never ask the hub; use its local cache.")
    trust_remote_code: bool = option(False, "Run code that the model brings.")
    base_url: str | None = option(
        None,
        "Server of chat:NAME and completions:NAME.  [default: OPENAI_BASE_URL, or OpenAI's own]",
        metavar="URL",
    )
    price: tuple[float, float] | None = option(
        None,
        "US dollars for a million tokens read and written, to show what a server costs.",
        bounds=(0, 1e6),
        metavar="IN OUT",
    )
    concurrency: int = option(8, "Requests to a server at a time.", bounds=(1, 1000), metavar="N")
    seed: int = 0

    def __post_init__(self) -> None:
        check_options(self)


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
    kind, colon, place = name.partition(":")
    if not colon or kind not in kinds():
        return _open(ANY_KIND, name, name, options)
    own = kinds()[kind]
    if not own.has_weights:
        refuse_map(name, options)
        refuse_quantising(name, options)
    if own.place and not place:
        raise InputError(Problem(name, None, f"names no model; write {kind}:{own.place}"))
    return _open(own.opener, name, place, options)


def _open(opener: str, name: str, place: str, options: ModelOptions) -> Any:
    module, function = opener.split(":")
    return getattr(import_module(module), function)(name, place, options)
