"""Models by name. Backends import their frameworks on first use.

baseline:chance          encoder:FOLDER or encoder:HUB-ID       package:NAME
causal:FOLDER, causal:HUB-ID or causal:FILE.gguf                seq2seq:FOLDER or seq2seq:HUB-ID
static:FILE              word vectors
cross-encoder:FOLDER or cross-encoder:HUB-ID        rerankers and other models of pairs
late-interaction:FOLDER or late-interaction:HUB-ID  ColBERT, and token vectors of other encoders
chat:NAME                text generation on an OpenAI-compatible server
completions:NAME         token likelihoods from such a server
embeddings:NAME          vectors from such a server
FOLDER, HUB-ID or FILE.gguf     the kind is derived from the model's configuration; also models of
                                giccs csts train, for the task csts
python:MODULE:ATTRIBUTE  an object or a function, see `giccs.models.objects`
MODEL+STEP               other vectors (words, first-last) or transformed ones (whitening, abtt, pcr, flow)

The abilities of a model are declared by the protocols of `giccs.models.abilities` that it implements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from bws.base.options import MAX_COUNT, check_options, flag_of, option
from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    Model,
    PromptedModel,
    ResizableModel,
    ServedModel,
    VectorModel,
)
from giccs.models.checkpoint import DTYPES, located, stated_kind
from giccs.models.devices import refuse_map
from giccs.models.encoder_prompts import EXPECTED_PROMPT, PROMPT_PATTERN
from giccs.models.model_errors import UnsupportedOptionError, reported_damage
from giccs.models.pooling import POOLINGS
from giccs.models.quantisation import KINDS as QUANTISATIONS
from giccs.models.quantisation import refuse_quantising
from giccs.models.served.budget import Spending

__all__ = [
    "ENCODER_OPTIONS",
    "KINDS",
    "Kind",
    "ModelOptions",
    "UnsupportedOptionError",
    "check_server_options",
    "configured",
    "has_revisions",
    "kinds",
    "open_base",
    "open_model",
]


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
    "embeddings": Kind("giccs.models.served.embeddings:open_embeddings", "NAME", has_weights=False),
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
        is_file=True,
    )
    prompt: tuple[str, ...] = option(
        (),
        "Prompt of an encoder: NAME of the model's own, NAME=TEXT, or none; with || between those of the "
        "target and the candidate. Can be repeated: one result each.  [default: the model's default]",
        pattern=PROMPT_PATTERN,
        expects=EXPECTED_PROMPT,
        metavar="NAME[=TEXT]",
    )
    pooling: str | None = option(
        None,
        "Vector of a text from those of its tokens: their mean, the first (cls), the last, or the model's "
        "own pooling.  [default: model; mean if it has none]",
        choices=POOLINGS,
    )
    dimensions: int | None = option(
        None,
        "Use the first N dimensions of vectors.  [default: all]",
        bounds=(1, MAX_COUNT),
        metavar="N",
    )
    embeddings: str = option(
        "float32",
        "Precision of vectors: int8, with the range of each dimension over the encoded texts, or binary.",
        choices=("float32", "int8", "binary"),
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
        "Server of chat:NAME, completions:NAME and embeddings:NAME.  [default: OPENAI_BASE_URL, or OpenAI's "
        "own]",
        metavar="URL",
    )
    price: tuple[float, float] | None = option(
        None,
        "Prices in US dollars per million input and output tokens, for the cost report.",
        bounds=(0, 1e6),
        metavar="IN OUT",
    )
    budget: float | None = option(
        None,
        "Maximum cost in US dollars of the requests of this call, which ends before it would be exceeded; "
        "requires a known price.",
        bounds=(0, 1e9),
        metavar="USD",
    )
    concurrency: int = option(
        8, "Maximum number of concurrent requests to a server.", bounds=(1, 1000), metavar="N"
    )
    seed: int = 0
    spending: Spending = field(default_factory=Spending, compare=False, repr=False)
    """Cost of the requests of all models with these options, or with copies of them."""

    def __post_init__(self) -> None:
        check_options(self)

    def each_prompt(self) -> list[ModelOptions]:
        """Return the options of one model per prompt.

        >>> [options.prompt for options in ModelOptions(prompt=("none", "query")).each_prompt()]
        [('none',), ('query',)]
        """
        return [replace(self, prompt=(prompt,)) for prompt in self.prompt] or [self]


ENCODER_OPTIONS = ("prompt", "pooling", "dimensions", "embeddings")
"""Options of models that determine what is measured, and therefore can be in recipes and sweeps."""
SERVER_OPTIONS = ("base_url", "price", "budget", "concurrency")
"""Options of models on a server, which other models ignore."""
SERVED_KINDS = ("chat", "completions", "embeddings")


def check_server_options(models: Sequence[Model], options: ModelOptions) -> None:
    """Raise InputError for options of models on a server if none of the models is on a server.

    >>> check_server_options([open_model("baseline:chance")], ModelOptions(base_url="http://127.0.0.1/v1"))
    Traceback (most recent call last):
    bws.base.problems.InputError: --base-url: no model is on a server; expected chat:NAME, completions:NAME \
or embeddings:NAME
    """
    default = ModelOptions()
    used = [name for name in SERVER_OPTIONS if getattr(options, name) != getattr(default, name)]
    if used and not any(map(_is_served, models)):
        *others, last = (f"{kind}:NAME" for kind in SERVED_KINDS)
        message = f"no model is on a server; expected {', '.join(others)} or {last}"
        raise InputError(Problem(flag_of(name), None, message) for name in used)


def _is_served(model: Model) -> bool:
    """Return whether a model is on a server, or of a kind of another package, which may use its options."""
    kind, colon, _ = model.name.partition(":")
    is_external = bool(colon) and kind in kinds() and kind not in KINDS
    return isinstance(model, ServedModel) or kind in SERVED_KINDS or is_external


def open_model(
    name: str,
    options: ModelOptions | None = None,
    opener: Callable[[str, ModelOptions], Model] | None = None,
) -> Model:
    """Return the model called `name`, without loading its weights.

    opener: a cached `open_base`, so that several prompts, dimensions and steps share the weights of a model.
    Raises InputError with a remedy if the model is unavailable, UnsupportedOptionError for an option that it
    does not support, and ValueError for several prompts, see `ModelOptions.each_prompt`.

    >>> open_model("baseline:char-ngram").identity["kind"]
    'baseline'
    """
    options = options or ModelOptions()
    base, steps = name, list[str]()
    if "+" in name:
        from giccs.models.postprocess.steps import split_steps

        base, steps = split_steps(name)
    base_options = replace(options, prompt=(), dimensions=None, embeddings="float32")
    model = (opener or open_base)(base, base_options)
    if options.pooling and "pooling" not in model.identity:
        raise UnsupportedOptionError(name, "supports no other pooling", "pooling")
    if not steps:
        return configured(model, options)
    from giccs.models.postprocess import wrapped

    model = _prompted(model, options)
    for step in steps:
        model = wrapped(model, step, options.seed)
    return _compressed(model, options)


def configured(model: Model, options: ModelOptions) -> Model:
    """Return an opened model with the prompt, the dimensions and the precision of the options.

    Raises UnsupportedOptionError for those that it does not support.
    """
    return _compressed(_prompted(model, options), options)


def _prompted(model: Model, options: ModelOptions) -> Model:
    if not options.prompt:
        if isinstance(model, PromptedModel):
            model.with_prompt("default")  # refuses a model without a default route
        return model
    if len(options.prompt) > 1:
        raise ValueError(f"{len(options.prompt)} prompts; expected one per model")
    if not isinstance(model, PromptedModel):
        raise UnsupportedOptionError(model.name, "supports no prompts", "prompt")
    return model.with_prompt(options.prompt[0])


def _compressed(model: Model, options: ModelOptions) -> Model:
    if options.dimensions is not None and isinstance(model, ResizableModel):
        model = model.with_dimensions(options.dimensions)
        options = replace(options, dimensions=None)
    values = {"dimensions": options.dimensions, "embeddings": options.embeddings != "float32"}
    used = [name for name, value in values.items() if value]
    if not used:
        return model
    if not isinstance(model, VectorModel):
        raise UnsupportedOptionError(model.name, "returns no vectors", *used)
    from giccs.models.compression import compressed

    return compressed(model, options.dimensions, options.embeddings)


def open_base(name: str, options: ModelOptions) -> Model:
    """Return the model of a name without steps, whose prompt is its default, and whose vectors are
    complete."""
    kind, colon, location = name.partition(":")
    if options.revision and not has_revisions(name):
        raise UnsupportedOptionError(name, "is no hub id", "revision")
    if not colon or kind not in kinds():
        path = located(name, options.revision, offline=options.offline)
        with reported_damage(name):
            return _open(KINDS[stated_kind(path)].opener, name, str(path), options)
    kind_entry = kinds()[kind]
    if not kind_entry.has_weights:
        refuse_map(name, options)
        refuse_quantising(name, options)
    if kind_entry.location and not location:
        raise InputError(
            Problem(name, None, f"missing model name; expected {kind}:{kind_entry.location}")
        )
    with reported_damage(name) if kind_entry.has_weights else nullcontext():
        return _open(kind_entry.opener, name, location, options)


def has_revisions(name: str) -> bool:
    """Return whether a name is a hub id, or of a kind of another package, which may have revisions."""
    kind, colon, location = name.partition(":")
    if not colon or kind not in kinds():
        location = name
    elif kind not in KINDS:
        return True
    elif kind == "package" or not KINDS[kind].has_weights:
        return False
    return not Path(location).expanduser().exists()


def _open(opener: str, name: str, location: str, options: ModelOptions) -> Model:
    module, function = opener.split(":")
    model: Model = getattr(import_module(module), function)(name, location, options)
    return model
