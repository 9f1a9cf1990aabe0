"""Models by name. Backends import their frameworks on first use.

baseline:chance          encoder:FOLDER or encoder:HUB-ID       package:NAME
causal:FOLDER, causal:HUB-ID or causal:FILE.gguf                seq2seq:FOLDER or seq2seq:HUB-ID
static:FILE              word vectors
cross-encoder:FOLDER or cross-encoder:HUB-ID        rerankers and other models of pairs
late-interaction:FOLDER or late-interaction:HUB-ID  ColBERT, and token vectors of other encoders
chat:NAME                text generation on an OpenAI-compatible server
completions:NAME         token likelihoods from such a server
FOLDER, HUB-ID or FILE.gguf     the kind is derived from the model's configuration; also models of
                                giccs-csts train, for the task csts
python:MODULE:ATTRIBUTE  an object or a function, see `giccs.models.objects`
MODEL+STEP               other vectors (words, first-last) or transformed ones (whitening, abtt, pcr, flow)

The abilities of a model are declared by the protocols of `giccs.models.abilities` that it implements.
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
    """A kind of model and its opener, for names ``KIND:LOCATION``."""

    opener: str
    """``module:function``, called with the whole name, the location and the `ModelOptions`; imported
    lazily."""
    location: str = ""
    """Form of the part after the colon, for messages; if empty, the opener reports it."""
    has_weights: bool = True
    """Whether weights are loaded locally, so that they can be quantised and distributed over devices."""


KINDS = {
    "baseline": Kind("giccs.models.baseline:open_baseline", has_weights=False),
    "causal": Kind("giccs.models.causal:open_causal", "FOLDER or causal:HUB-ID"),
    "chat": Kind("giccs.models.served.chat:open_chat", "NAME", has_weights=False),
    "completions": Kind(
        "giccs.models.served.completions:open_completions", "NAME", has_weights=False
    ),
    "cross-encoder": Kind(
        "giccs.models.cross_encoder:open_cross_encoder", "FOLDER or cross-encoder:HUB-ID"
    ),
    "encoder": Kind("giccs.models.sentence:open_encoder", "FOLDER or encoder:HUB-ID"),
    "late-interaction": Kind(
        "giccs.models.late_interaction:open_late_interaction", "FOLDER or late-interaction:HUB-ID"
    ),
    "package": Kind("giccs.models.packaged:open_packaged"),
    "python": Kind("giccs.models.objects:open_python", "MODULE:ATTRIBUTE", has_weights=False),
    "seq2seq": Kind("giccs.models.seq2seq:open_seq2seq", "FOLDER or seq2seq:HUB-ID"),
    "static": Kind("giccs.models.static:open_static", "FILE", has_weights=False),
}


@cache
def kinds() -> Mapping[str, Kind]:
    """Return `KINDS` and the entry points of other packages in the group ``giccs.models``."""
    external_kinds = {point.name: Kind(point.value) for point in entry_points(group="giccs.models")}
    return KINDS | external_kinds


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options for opening and running a model."""

    batch_size: int | None = option(
        None,
        "Batch size in texts; auto increases it while throughput improves and memory allows.",
        bounds=(1, MAX_COUNT),
        expects=f"a number from 1 to {MAX_COUNT}",
        none="auto",
        metavar="auto|N",
    )
    device: str = option(
        "auto",
        "Device of the model; auto uses a GPU if available.",
        pattern="auto|cpu|mps|cuda(:[0-9]{1,3})?",
        expects="auto, cpu, cuda, cuda:N or mps",
        metavar="auto|cpu|cuda[:N]|mps",
    )
    device_map: str | None = option(
        None,
        "Distribute a large model over GPUs, main memory and disk: auto, balanced, balanced_low_0, "
        "sequential, or a JSON file that maps parts of the model to devices.",
        metavar="MAP|FILE",
    )
    dtype: str = option(
        "auto", "Data type of the weights; auto uses the saved type.", choices=("auto", *DTYPES)
    )
    quantise: str | None = option(
        None, "Quantise weights during loading.  [default: as saved]", choices=QUANTISATIONS
    )
    revision: str | None = option(None, "Branch, tag or commit of a hub id.", metavar="REV")
    offline: bool = option(False, "Use only the local cache, without access to the hub.")
    trust_remote_code: bool = option(False, "Allow the execution of code in the model repository.")
    base_url: str | None = option(
        None,
        "Server of chat:NAME and completions:NAME.  [default: OPENAI_BASE_URL, or OpenAI's own]",
        metavar="URL",
    )
    price: tuple[float, float] | None = option(
        None,
        "Prices in US dollars per million input and output tokens, for the cost report.",
        bounds=(0, 1e6),
        metavar="IN OUT",
    )
    concurrency: int = option(
        8, "Maximum number of concurrent requests to a server.", bounds=(1, 1000), metavar="N"
    )
    seed: int = 0

    def __post_init__(self) -> None:
        check_options(self)


def open_model(name: str, options: ModelOptions | None = None) -> Model:
    """Return the model called `name`, without loading its weights.

    Raises InputError with a remedy if the model is unavailable.

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
    kind, colon, location = name.partition(":")
    if not colon or kind not in kinds():
        path = located(name, options.revision, offline=options.offline)
        return _open(KINDS[stated_kind(path)].opener, name, str(path), options)
    kind_entry = kinds()[kind]
    if not kind_entry.has_weights:
        refuse_map(name, options)
        refuse_quantising(name, options)
    if kind_entry.location and not location:
        raise InputError(
            Problem(name, None, f"missing model name; expected {kind}:{kind_entry.location}")
        )
    return _open(kind_entry.opener, name, location, options)


def _open(opener: str, name: str, location: str, options: ModelOptions) -> Model:
    module, function = opener.split(":")
    model: Model = getattr(import_module(module), function)(name, location, options)
    return model
