"""Models by name. Each backend imports its framework itself, and only once it is used.

baseline:chance          encoder:FOLDER or encoder:HUB-ID       package:NAME
causal:FOLDER, causal:HUB-ID or causal:FILE.gguf                seq2seq:FOLDER or seq2seq:HUB-ID
static:FILE              word vectors
chat:NAME                on an OpenAI-compatible server, which writes answers
completions:NAME         on such a server, which says how likely the tokens of a text are
FOLDER, HUB-ID or FILE.gguf     the kind follows from the model's own configuration; also what giccs-csts
                                train made, which is for the task csts
MODEL+STEP               vectors by another way (words, first-last) or changed (whitening, abtt, pcr, flow)

What a model can do is declared by the protocols of `giccs.models.abilities` that it implements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from bws.options import MAX_COUNT, check_options, option
from bws.problems import InputError, Problem
from giccs.models.abilities import Model
from giccs.models.checkpoint import DTYPES, located, stated_kind
from giccs.models.devices import refuse_map
from giccs.models.quantisation import KINDS as QUANTISATIONS
from giccs.models.quantisation import refuse_quantising

__all__ = ["KINDS", "Kind", "ModelOptions", "kinds", "open_model"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of models: what opens the model called ``KIND:PLACE``."""

    opener: str
    """``module:function``, called with the whole name, the place and the `ModelOptions`; imported late."""
    place: str = ""
    """What is written after the colon, for messages; empty: the opener says it."""
    has_weights: bool = True
    """Whether weights are loaded here, which take a GPU and can be quantised and spread over devices."""


KINDS = {
    "baseline": Kind("giccs.models.baseline:open_baseline", has_weights=False),
    "causal": Kind("giccs.models.causal:open_causal", "FOLDER or causal:HUB-ID"),
    "chat": Kind("giccs.models.served.chat:open_chat", "NAME", has_weights=False),
    "completions": Kind(
        "giccs.models.served.completions:open_completions", "NAME", has_weights=False
    ),
    "encoder": Kind("giccs.models.sentence:open_encoder", "FOLDER or encoder:HUB-ID"),
    "package": Kind("giccs.models.packaged:open_packaged"),
    "seq2seq": Kind("giccs.models.seq2seq:open_seq2seq", "FOLDER or seq2seq:HUB-ID"),
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


def open_model(name: str, options: ModelOptions | None = None) -> Model:
    """Return the model called `name`; nothing is loaded yet.

    Raises InputError with one sentence on what to do where the model cannot be had.

    >>> open_model("baseline:char-ngram").identity["kind"]
    'baseline'
    """
    options = options or ModelOptions()
    if "+" not in name:
        return _opened(name, options)
    from giccs.models.postprocess import wrapped
    from giccs.models.postprocess.steps import split_steps

    base, steps = split_steps(name)
    model = _opened(base, options)
    for step in steps:
        model = wrapped(model, step, options.seed)
    return model


def _opened(name: str, options: ModelOptions) -> Model:
    kind, colon, place = name.partition(":")
    if not colon or kind not in kinds():
        path = located(name, options.revision, offline=options.offline)
        return _open(KINDS[stated_kind(path)].opener, name, str(path), options)
    own = kinds()[kind]
    if not own.has_weights:
        refuse_map(name, options)
        refuse_quantising(name, options)
    if own.place and not place:
        raise InputError(Problem(name, None, f"names no model; write {kind}:{own.place}"))
    return _open(own.opener, name, place, options)


def _open(opener: str, name: str, place: str, options: ModelOptions) -> Model:
    module, function = opener.split(":")
    model: Model = getattr(import_module(module), function)(name, place, options)
    return model
