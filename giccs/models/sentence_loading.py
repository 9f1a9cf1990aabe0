"""Loading of models by sentence-transformers, with checks of their weights, tokenizer and tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.checkpoint import first_line
from giccs.models.devices import check_device, device_map, devices, must_cover
from giccs.models.input_limits import input_modules, limit_to_positions
from giccs.models.loading import uninterrupted
from giccs.models.quantisation import quantisation, quantised_with, settle
from giccs.models.vocabulary import TokenCounter, check_tokenizer
from giccs.models.weights import (
    LoadingReport,
    check_weights,
    recorded_loading,
    size_and_licence,
    unused_weights,
)

if TYPE_CHECKING:
    from giccs.models import ModelOptions


def load_sentence_transformers(
    name: str,
    options: ModelOptions,
    dtype: str,
    build: Callable[..., Any],
    unused: Callable[[Any], Collection[str]] = lambda model: (),
    projection: Collection[str] = (),
) -> tuple[Any, str]:
    """Return a model of sentence-transformers, and a description of the ignored heads of its checkpoint.

    build: called with the module `sentence_transformers` and the arguments of its models, except
    ``trust_remote_code``, which it states itself. unused: called with the model; modules that may be missing
    from the checkpoint because they are not used. projection: tensors that the library reads besides those of
    the transformer. The tokens of every batch are counted and must be in the vocabulary. Raises
    InputError with a remedy if the model cannot be loaded.
    """
    missing = [part for part in ("torch", "sentence_transformers") if find_spec(part) is None]
    if missing:
        message = f"needs {' and '.join(missing)}; install them with: pip install 'giccs[models]'"
        raise InputError(Problem(name, None, message))
    with uninterrupted():
        import sentence_transformers
        import torch
        from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    check_device(name, options.device)
    device = None if options.device == "auto" else options.device
    spread = device_map(name, options)
    if spread is None and options.quantise:
        spread = {"": device or ("cuda" if torch.cuda.is_available() else "cpu")}
    weights = {"dtype": getattr(torch, dtype), **quantisation(options, dtype)}
    try:
        with recorded_loading() as reports:
            model = build(
                sentence_transformers,
                device=device,
                local_files_only=options.offline,
                model_kwargs=weights | ({} if spread is None else {"device_map": spread}),
            )
        others = [_without(report, projection) for report in reports]
        note = check_weights(others, unused(model))
        for module in input_modules(model):
            check_tokenizer(getattr(module, "tokenizer", None))
        if isinstance(spread, dict):
            must_cover(_transformer(model), spread)
    except Exception as error:  # Frameworks raise many kinds of exceptions, also for damaged files.
        if isinstance(error, InputError):
            raise
        raise InputError(Problem(name, None, f"cannot be loaded: {first_line(error)}")) from error
    settle(name, model, options)
    limit_to_positions(model)
    for module in input_modules(model):
        check = token_check(name, module)
        module.register_forward_pre_hook(lambda _, inputs, check=check: check(inputs[0]))
    return model, note


def _transformer(model: Any) -> Any:
    """Return the first transformer inside a model, or the model itself if there is none."""
    transformer = model.transformers_model
    return model if transformer is None else transformer


def _without(report: LoadingReport, tensors: Collection[str]) -> LoadingReport:
    unexpected = tuple(name for name in report.unexpected if name not in tensors)
    return replace(report, unexpected=unexpected)


def token_check(name: str, module: Any) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that counts the tokens of a batch for a module that reads texts.

    The function raises InputError for ids without a vector in the model.
    """
    tokenizer = getattr(module, "tokenizer", None)
    counter, vocabulary = TokenCounter(tokenizer), _vocabulary(module, tokenizer)

    def check(features: Mapping[str, Any]) -> None:
        counter.batch(features)
        ids = features.get("input_ids")
        if ids is not None and vocabulary and int(ids.max()) >= vocabulary:
            message = (
                f"its tokenizer produces token {int(ids.max())}, but the vocabulary has {vocabulary} "
                "entries; the tokenizer may be that of another model"
            )
            raise InputError(Problem(name, None, message))

    return check


def _vocabulary(module: Any, tokenizer: Any) -> int:
    """Return the number of token vectors of a module, if its tokenizer may produce other ids; else 0."""
    transformer = getattr(module, "auto_model", None)
    if transformer is None or not hasattr(tokenizer, "get_vocab"):
        return 0
    try:
        rows = int(transformer.get_input_embeddings().weight.shape[0])
    except NotImplementedError:  # Models of several modalities, such as CLIP.
        return 0
    return rows if max(tokenizer.get_vocab().values(), default=0) >= rows else 0


def library_environment(
    model: Any, folder: Path, options: ModelOptions, batch_size: int, note: str
) -> dict[str, Any]:
    """Return versions, device, batch size, size, licence and ignored heads, for the environment of a
    result."""
    packages = ("torch", "transformers", "sentence-transformers")
    transformer = model.transformers_model
    is_spread = bool(getattr(transformer, "hf_device_map", None))
    return {
        **{package: version(package) for package in packages},
        **quantised_with(options),
        "device": devices(transformer) if is_spread else str(model.device),
        "batch_size": batch_size,
        **size_and_licence(model, folder),
        **unused_weights(note),
    }
