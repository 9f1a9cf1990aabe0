"""Comparison of a checkpoint's tensors with the architecture; transformers initialises missing ones at
random."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from giccs.benchmark.front_matter import read_front_matter

POOLER = ("pooler",)
"""The part of an encoder that is not used for vectors from the states of the last layer."""
HEADS = frozenset({
    "answer_class", "classification_head", "classifier", "cls", "decoder.bias", "decoder.weight",
    "discriminator_predictions", "embed_out", "embedding_decoder", "end_logits",
    "final_logits_bias", "generator_lm_head", "generator_predictions", "head", "lm_head", "lm_loss",
    "lm_predictions", "logits_proj", "mask_predictions", "mlm_head", "mtp", "multiple_choice_head",
    "output_projection", "pooler", "pre_classifier", "pred_layer", "predictions", "qa_classifier",
    "qa_outputs", "score", "sequence_summary", "sop_classifier", "start_logits", "v_head",
    "vocab_layer_norm", "vocab_projector", "vocab_transform",
})  # fmt: skip
"""Modules on top of the body of transformers models, for pre-training or another task."""
OTHER_MODALITIES = frozenset({
    "audio_model", "audio_tower", "multi_modal_projector", "vision_model", "vision_tower", "visual",
})  # fmt: skip
"""Modules for images and sound."""
MAX_TENSORS_LISTED = 3
NO_ADAPTER = "without-adapter"
"""A folder that does not exist, in which transformers finds no adapter."""

_patching = Lock()


@dataclass(frozen=True, slots=True)
class LoadingReport:
    """Differences between the tensors of a checkpoint and the parameters of an architecture."""

    architecture: str
    prefix: str
    """Name of this model inside a model with a head."""
    missing: tuple[str, ...]
    """Parameters that are missing from the checkpoint and have random values."""
    unexpected: tuple[str, ...]
    """Tensors without a parameter in the architecture."""
    mismatched: tuple[str, ...]
    """Parameters with another shape in the checkpoint, with both shapes; they have random values."""
    dequantised: str = ""
    """Method of quantisation of the checkpoint, if this machine lacks its kernels."""


def loading_report(model: Any, info: Mapping[str, Collection[Any]]) -> LoadingReport:
    """Return the report from `output_loading_info` of transformers for a loaded model.

    A parameter that shares its tensor with another one is not missing.
    """
    names = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}
    mismatched = (
        f"{name} is {_shape(saved)}, expected {_shape(expected)}"
        for name, saved, expected in info["mismatched_keys"]
    )
    return LoadingReport(
        type(model).__name__,
        str(getattr(model, "base_model_prefix", "")),
        tuple(sorted(names.intersection(info["missing_keys"]))),
        tuple(sorted(info["unexpected_keys"])),
        tuple(sorted(mismatched)),
    )


def check_weights(reports: Sequence[LoadingReport], optional: Collection[str] = ()) -> str:
    """Return a description of ignored or missing heads, or an empty string.

    optional: modules that may be missing because they are not used. Raises ValueError, with the first names
    and the counts, if any other tensor is missing or unexpected, or has another shape.
    """
    for report in reports:
        _check(report, optional)
    notes = [note for report in reports for note in _heads(report)]
    return "; ".join(dict.fromkeys(notes))


def unused_weights(note: str) -> dict[str, str]:
    """Return the environment entry of a result for the return value of `check_weights`."""
    return {"unused_weights": note} if note else {}


def size_and_licence(model: Any, folder: Path) -> dict[str, Any]:
    """Return the environment entries of a result: the number of parameters, unless weights are quantised, and
    the licence if the README of the model states it, as that of the hub.

    >>> import torch
    >>> size_and_licence(torch.nn.Linear(3, 2), Path("missing"))
    {'parameters': 8}
    """
    configs = (getattr(module, "config", None) for module in model.modules())
    is_quantised = any(getattr(config, "quantization_config", None) for config in configs)
    n_parameters = sum(weight.numel() for weight in model.parameters())
    licence = read_front_matter(folder / "README.md").get("license")
    return ({} if is_quantised else {"parameters": n_parameters}) | (
        {"license": licence} if isinstance(licence, str) else {}
    )


def _check(report: LoadingReport, optional: Collection[str]) -> None:
    missing = [name for name in report.missing if _module(name, report) not in optional]
    unexpected = [name for name in report.unexpected if not _is_unused(name, report)]
    faults = [
        f"{len(names)} {_tensors(names)} {fault} ({_listed(names)})"
        for names, fault in (
            (missing, "missing and would be random"),
            (unexpected, "unexpected"),
            (report.mismatched, "of another shape"),
        )
        if names
    ]
    if faults:
        raise ValueError(f"its weights do not match {report.architecture}: {'; '.join(faults)}")


def _heads(report: LoadingReport) -> Iterator[str]:
    """Yield a line per module that exists on one side only; all other tensors match. Before, a line for
    weights that are not used as they were saved."""
    if report.dequantised:
        yield f"dequantised from {report.dequantised}"
    for names, fault in ((report.unexpected, "ignored"), (report.missing, "missing and not used")):
        for module in dict.fromkeys(_module(name, report) for name in names):
            count = sum(_module(name, report) == module for name in names)
            yield f"{module} ({count} {'tensor' if count == 1 else 'tensors'}) {fault}"


def _is_unused(name: str, report: LoadingReport) -> bool:
    return _module(name, report) in HEADS | OTHER_MODALITIES


def _module(name: str, report: LoadingReport) -> str:
    """Return the outermost module of a tensor, without the name of the body.

    The output layer of ModernBERT has the name of the decoder of encoder-decoders, and is not a module of
    layers: its tensors keep their names.
    """
    inner = name.removeprefix(f"{report.prefix}.") if report.prefix else name
    return inner if inner in HEADS else inner.partition(".")[0]


def _tensors(names: Sequence[str]) -> str:
    return "tensor is" if len(names) == 1 else "tensors are"


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > MAX_TENSORS_LISTED else ""
    return ", ".join(names[:MAX_TENSORS_LISTED]) + more


def _shape(size: Sequence[int]) -> str:
    return "×".join(map(str, size))


@contextmanager
def recorded_loading() -> Iterator[list[LoadingReport]]:
    """Collect a report of every model that transformers loads in this block.

    sentence-transformers neither returns these reports nor has an option to request them.
    """
    from transformers import PreTrainedModel

    reports: list[LoadingReport] = []
    with _patching:
        original = PreTrainedModel.__dict__["from_pretrained"]
        setattr(PreTrainedModel, "from_pretrained", classmethod(_recorder(original, reports)))  # noqa: B010
        try:
            yield reports
        finally:
            setattr(PreTrainedModel, "from_pretrained", original)  # noqa: B010


def _recorder(original: Any, reports: list[LoadingReport]) -> Callable[..., Any]:
    """Return a wrapper of `PreTrainedModel.from_pretrained` that adds to `reports`."""

    def from_pretrained(
        cls: Any, *args: Any, output_loading_info: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["ignore_mismatched_sizes"] = True  # They are reported together with the others.
        # With an adapter, transformers returns the report of the adapter only.
        adapter = (kwargs.get("adapter_kwargs") or {}).get("_adapter_model_path")
        if adapter is not None:
            kwargs["adapter_kwargs"] = {"subfolder": NO_ADAPTER}
        method = _quantisation_method(kwargs.get("config"))
        model, info = original.__get__(None, cls)(*args, output_loading_info=True, **kwargs)
        is_changed = bool(method) and getattr(model, "hf_quantizer", None) is None
        report = loading_report(model, info)
        reports.append(replace(report, dequantised=method if is_changed else ""))
        if adapter is not None:
            info = model.load_adapter(str(adapter)).to_dict()
            reports.append(loading_report(model, info))
        return (model, info) if output_loading_info else model

    return from_pretrained


def _quantisation_method(config: Any) -> str:
    """Return the method by which the weights of a configuration were quantised, or an empty string."""
    settings = getattr(config, "quantization_config", None) or {}
    settings = settings if isinstance(settings, dict) else vars(settings)
    method = settings.get("quant_method") or ""
    name = str(getattr(method, "value", method))
    return "" if name == "gguf" else name  # GGUF files are always dequantised.
