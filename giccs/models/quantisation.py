"""Weights of 4 or 8 bits, quantised during loading or in the checkpoint.

bitsandbytes quantises during loading: 4 bits are NF4 (QLoRA, Dettmers et al. 2023), with sums in the model's
data type; 8 bits are LLM.int8() (Dettmers et al. 2022), with inputs rounded to float16.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.model_errors import UnsupportedOptionError

if TYPE_CHECKING:
    from giccs.models import ModelOptions

KINDS = {"4bit": "bitsandbytes NF4, 4 bits", "8bit": "bitsandbytes LLM.int8(), 8 bits"}
"""Quantisation options and their names in results."""
SHARES = {"4bit": 0.3, "8bit": 0.55}
"""Memory requirement relative to half precision; embeddings are not quantised."""
READERS = {
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed_tensors",
    "gptq": "gptqmodel",
    "hqq": "hqq",
    "quanto": "optimum.quanto",
    "torchao": "torchao",
}
"""Quantisation method of a checkpoint -> module that transformers requires to read it."""


def check_quantised(name: str, config: Any, options: ModelOptions, *, gguf: bool = False) -> None:
    """Raise InputError if weights cannot be quantised as requested, or read as saved.

    `config` is the content of the model's ``config.json``.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    own_config = (config.get("quantization_config") if isinstance(config, dict) else None) or {}
    method = own_config.get("quant_method") if isinstance(own_config, dict) else None
    reader = READERS.get(str(method))
    if reader and not _is_installed(reader):
        package = reader.replace("_", "-").replace(".", "-")
        raise refused(
            f"its weights are quantised by {method}, which requires {package}; install it with: pip "
            f"install {package}"
        )
    if method and not reader and not _is_known(str(method)):
        # transformers would load the quantised numbers as if they were weights.
        message = f"its weights are quantised by {method}, which transformers does not know"
        raise refused(f"{message}; expected unquantised weights, or another method")
    if options.quantise is None:
        return
    if gguf or method:
        already = "comes from a GGUF file" if gguf else f"already quantised by {method}"
        raise refused(f"{already}; omit --quantise")
    if find_spec("bitsandbytes") is None or find_spec("accelerate") is None:
        raise refused(
            "--quantise requires bitsandbytes; install it with: pip install 'giccs[quantised]'"
        )


def refuse_quantising(name: str, options: ModelOptions) -> None:
    """Raise UnsupportedOptionError if quantisation is requested for a model without weights."""
    if options.quantise is not None:
        raise UnsupportedOptionError(name, "has no weights to quantise", "quantise")


def settle(name: str, model: Any, options: ModelOptions) -> None:
    """Make the numbers of a loaded model independent of the processor.

    On some processors (AVX512-BF16), bitsandbytes repacks 4-bit weights with scales in bfloat16. Raises
    InputError if quantised weights were requested and the model has none.
    """
    parts = [
        module for module in model.modules() if type(module).__module__.startswith("bitsandbytes.")
    ]
    if not parts:
        refuse_quantising(name, options)
    for part in parts:
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # Of optimum.quanto and optimum.
        return False


def _is_known(method: str) -> bool:
    """Return whether transformers can read weights of a quantisation method; True if it is missing."""
    if not _is_installed("transformers"):
        return True
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    return method in AUTO_QUANTIZATION_CONFIG_MAPPING


def quantised_as(options: ModelOptions) -> dict[str, str]:
    """Return the signature entry of a result; empty for unchanged weights."""
    return {} if options.quantise is None else {"quantised": KINDS[options.quantise]}


def quantised_with(options: ModelOptions) -> dict[str, str]:
    """Return the environment entry of a result: the version of the quantisation library, if used."""
    return {} if options.quantise is None else {"bitsandbytes": version("bitsandbytes")}


def quantisation(options: ModelOptions, dtype: str) -> dict[str, Any]:
    """Return the arguments for transformers to quantise weights during loading."""
    if options.quantise is None:
        return {}
    import torch
    from transformers import BitsAndBytesConfig

    logging.getLogger("bitsandbytes").setLevel(
        logging.ERROR
    )  # It warns about casting for each matrix.
    if options.quantise == "8bit":
        config = BitsAndBytesConfig(load_in_8bit=True)  # type: ignore[no-untyped-call]
    else:
        config = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=getattr(torch, dtype),
        )
    return {"quantization_config": config}


def precision(options: ModelOptions, dtype: str) -> str:
    """Return the data type that determines rounding errors: LLM.int8() computes in float16."""
    return "float16" if options.quantise == "8bit" and dtype == "float32" else dtype
