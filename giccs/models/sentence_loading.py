"""Loading of models by sentence-transformers, with checks of their weights, tokenizer and tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.checkpoint import first_line
from giccs.models.devices import check_device, device_map, devices, must_cover
from giccs.models.input_limits import limit_to_positions
from giccs.models.loading import uninterrupted
from giccs.models.quantisation import quantisation, quantised_with, settle
from giccs.models.vocabulary import TokenCounter, check_tokenizer
from giccs.models.weights import LoadingReport, check_weights, recorded_loading, unused_weights

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["library_environment", "load_sentence_transformers"]


def load_sentence_transformers(
    name: str,
    options: ModelOptions,
    dtype: str,
    build: Callable[..., Any],
    unused: Collection[str] = (),
    projection: Collection[str] = (),
) -> tuple[Any, str]:
    """Return a model of sentence-transformers, and a description of the ignored heads of its checkpoint.

    build: called with the module `sentence_transformers` and the arguments of its models, except
    ``trust_remote_code``, which it states itself. unused: modules
    that may be missing from the checkpoint because they are not used. projection: tensors that the library
    reads besides those of the transformer. The tokens of every batch are counted and must be in the
    vocabulary. Raises InputError with a remedy if the model cannot be loaded.
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
        note = check_weights(others, unused)
        check_tokenizer(getattr(model, "tokenizer", None))
        if isinstance(spread, dict):
            must_cover(model.transformers_model, spread)
    except Exception as error:  # Frameworks raise many kinds of exceptions, also for damaged files.
        if isinstance(error, InputError):
            raise
        raise InputError(Problem(name, None, f"cannot be loaded: {first_line(error)}")) from error
    settle(name, model, options)
    limit_to_positions(model)
    _watch_tokens(name, model)
    return model, note


def _without(report: LoadingReport, tensors: Collection[str]) -> LoadingReport:
    unexpected = tuple(name for name in report.unexpected if name not in tensors)
    return replace(report, unexpected=unexpected)


def _watch_tokens(name: str, model: Any) -> None:
    """Count the tokens of each batch; raise InputError for ids without a vector in the model."""
    counter = TokenCounter(model.tokenizer)
    vocabulary = int(model.transformers_model.get_input_embeddings().weight.shape[0])

    def check(module: Any, inputs: tuple[Mapping[str, Any], ...]) -> None:
        counter.batch(inputs[0])
        ids = inputs[0].get("input_ids")
        if ids is not None and int(ids.max()) >= vocabulary:
            message = (
                f"its tokenizer produces token {int(ids.max())}, but the vocabulary has {vocabulary} "
                "entries; the tokenizer may be that of another model"
            )
            raise InputError(Problem(name, None, message))

    model[0].register_forward_pre_hook(check)


def library_environment(
    model: Any, options: ModelOptions, batch_size: int, note: str
) -> dict[str, Any]:
    """Return versions, device, batch size and ignored heads, for the environment of a result."""
    packages = ("torch", "transformers", "sentence-transformers")
    return {
        **{package: version(package) for package in packages},
        **quantised_with(options),
        "device": devices(model.transformers_model),
        "batch_size": batch_size,
        **unused_weights(note),
    }
