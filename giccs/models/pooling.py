"""Pooling of the token vectors of an encoder into one vector per text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.model_errors import UnsupportedOptionError

if TYPE_CHECKING:
    from giccs.models import ModelOptions

POOLINGS = ("mean", "cls", "last", "model")
MODES = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
"""Pooling -> mode of sentence-transformers' module."""

OWN = "the model's own"


def check_pooling(name: str, parts: Any, options: ModelOptions) -> None:
    """Raise InputError if an encoder has no such pooling.

    parts: content of ``modules.json``; None for a plain encoder of transformers, which has token vectors but
    no pooling of its own.
    """
    if parts is None and options.pooling == "model":
        message = "has no pooling of its own; expected --pooling mean, cls or last"
        raise InputError(Problem(name, None, message))
    if parts is not None and options.pooling in MODES:
        modules = [str(part.get("type")).rpartition(".")[2] for part in parts]
        if "Pooling" not in modules:
            reason = f"consists of {', '.join(modules)}, without pooling of token vectors"
            raise UnsupportedOptionError(name, reason, "pooling")


def described_pooling(parts: Any, options: ModelOptions) -> str:
    """Return the pooling for the signature; by default the model's own, or the mean if it has none."""
    if parts is None:
        return options.pooling or "mean"
    return f"{options.pooling}, instead of {OWN}" if options.pooling in MODES else OWN


def pool_with(name: str, model: Any, pooling: str) -> None:
    """Replace the pooling module of a sentence-transformers model; the other modules remain.

    Raises InputError if a later module expects vectors of another size.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling

    for index, module in enumerate(model):
        if not isinstance(module, Pooling):
            continue
        size = module.embedding_dimension
        if module.pooling_output_dimension != size and index + 1 < len(model):
            message = (
                f"its own pooling joins {module.pooling_output_dimension // size} vectors, on which its "
                f"next module depends; omit --pooling {pooling}"
            )
            raise InputError(Problem(name, None, message))
        model[index] = Pooling(size, MODES[pooling], include_prompt=module.include_prompt)


def pad_right(module: Any) -> None:
    """Pad at the end, so that no position of a text depends on the other texts of its batch.

    Models without relative positions, such as GPT-2, give other vectors to texts padded at the start.
    sentence-transformers finds the last token by the attention mask. A tokenizer without padding token, such
    as those of GPT-2 and Llama, gets one; it is masked.
    """
    tokenizer: Any = getattr(module, "tokenizer", None)
    if getattr(tokenizer, "pad_token", "") is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    if hasattr(tokenizer, "padding_side"):
        tokenizer.padding_side = "right"
