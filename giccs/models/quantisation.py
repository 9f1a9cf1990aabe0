"""Weights of 4 or 8 bits: made as a model is loaded, or as they were saved.

They are made by bitsandbytes: 4 bits are NF4 (QLoRA, Dettmers et al. 2023), of which sums are computed in the
model's type; 8 bits are LLM.int8() (Dettmers et al. 2022), whose inputs are rounded, too, in float16.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = [
    "KINDS",
    "SHARES",
    "check_quantised",
    "precision",
    "quantisation",
    "quantised_as",
    "quantised_with",
    "refuse_quantising",
    "settle",
]

KINDS = {"4bit": "bitsandbytes NF4, 4 bits", "8bit": "bitsandbytes LLM.int8(), 8 bits"}
"""What can be asked for, and what stands in results."""
SHARES = {"4bit": 0.3, "8bit": 0.55}
"""Of the size of weights in half precision, what is taken in memory; embeddings stay as they are."""
READERS = {
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed_tensors",
    "gptq": "gptqmodel",
    "hqq": "hqq",
    "quanto": "optimum.quanto",
    "torchao": "torchao",
}
"""How a checkpoint was quantised -> the module without which transformers cannot read it."""


def check_quantised(name: str, config: Any, options: ModelOptions, *, gguf: bool = False) -> None:
    """Raise InputError where weights cannot be quantised as asked, or read as they were saved.

    `config` is what the model's ``config.json`` holds.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    own = (config.get("quantization_config") if isinstance(config, dict) else None) or {}
    method = own.get("quant_method") if isinstance(own, dict) else None
    reader = READERS.get(str(method))
    if reader and not _there(reader):
        package = reader.replace("_", "-").replace(".", "-")
        raise refused(
            f"its weights are quantised by {method}, and {package} is needed to read them; "
            f"install it with: pip install {package}"
        )
    if options.quantise is None:
        return
    if gguf or method:
        already = "comes from a GGUF file" if gguf else f"is quantised already, by {method}"
        raise refused(f"{already}; leave --quantise out")
    if find_spec("bitsandbytes") is None or find_spec("accelerate") is None:
        raise refused(
            "--quantise needs bitsandbytes; install it with: pip install 'giccs[quantised]'"
        )


def refuse_quantising(name: str, options: ModelOptions) -> None:
    """Raise InputError where quantised weights are asked for, of a model that has none."""
    if options.quantise is not None:
        raise InputError(Problem(name, None, "has no weights to quantise; leave --quantise out"))


def settle(name: str, model: Any, options: ModelOptions) -> None:
    """Let a loaded model's numbers be the same on all processors.

    On some (AVX512-BF16) bitsandbytes packs weights of 4 bits anew, with their scales in bfloat16. InputError
    where quantised weights were asked for, and the model has none.
    """
    parts = [one for one in model.modules() if type(one).__module__.startswith("bitsandbytes.")]
    if not parts:
        refuse_quantising(name, options)
    for part in parts:
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of optimum.quanto, optimum
        return False


def quantised_as(options: ModelOptions) -> dict[str, str]:
    """Return what stands in a result's signature; nothing where weights are as they were saved."""
    return {} if options.quantise is None else {"quantised": KINDS[options.quantise]}


def quantised_with(options: ModelOptions) -> dict[str, str]:
    """Return what stands in a result's environment: the version that quantised, if any did."""
    return {} if options.quantise is None else {"bitsandbytes": version("bitsandbytes")}


def quantisation(options: ModelOptions, dtype: str) -> dict[str, Any]:
    """Return what transformers is told, so that it quantises weights as it loads them."""
    if options.quantise is None:
        return {}
    import torch
    from transformers import BitsAndBytesConfig

    logging.getLogger("bitsandbytes").setLevel(
        logging.ERROR
    )  # it says of each matrix that it casts
    if options.quantise == "8bit":
        how = BitsAndBytesConfig(load_in_8bit=True)  # type: ignore[no-untyped-call]
    else:
        how = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=getattr(torch, dtype),
        )
    return {"quantization_config": how}


def precision(options: ModelOptions, dtype: str) -> str:
    """Return the type that a model's rounding is that of: LLM.int8() computes in float16 at best."""
    return "float16" if options.quantise == "8bit" and dtype == "float32" else dtype
