"""Adapters of PEFT: changes of the weights of another model, beside it or in a folder of their own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bws.base.problems import InputError, Problem
from giccs.models.checkpoint import ADAPTER, adapter_settings, located, revision

PROMPT_TYPES = (
    "PREFIX_TUNING",
    "PROMPT_TUNING",
    "P_TUNING",
    "MULTITASK_PROMPT_TUNING",
    "CARTRIDGE",
)
"""Types of learned prompts, which transformers does not apply."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter and the model that it changes."""

    folder: Path
    type: str
    """Method of PEFT, such as ``LORA``."""
    base: Path
    """Folder of the model that is changed."""

    def identity(self) -> dict[str, str]:
        """Return the signature entries: the method, and the changed weights if they are elsewhere."""
        elsewhere = {} if self.base == self.folder else {"base_revision": revision(self.base)}
        return {"adapter": self.type, **elsewhere}


def find_adapter(
    name: str, folder: Path, *, offline: bool, needs_base: bool = False
) -> Adapter | None:
    """Return the adapter in a folder, or None if there is none.

    Its base is the model beside it, or ``base_model_name_or_path``: a folder, or a hub id, which is
    downloaded if necessary. needs_base: also beside a model, because sentence-transformers reads the
    configuration of the base. Raises InputError if the base is not available, if PEFT is not installed, or if
    transformers does not apply such an adapter.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    settings = adapter_settings(folder)
    if settings is None:
        return None
    if find_spec("peft") is None:
        message = f"has an adapter ({ADAPTER}), which requires peft"
        raise refused(f"{message}; install it with: pip install 'giccs[models]'")
    method, base = str(settings.get("peft_type")), settings.get("base_model_name_or_path")
    if method in PROMPT_TYPES:
        message = f"its adapter is a learned prompt ({method}), which transformers does not apply"
        raise refused(f"{message}; expected an adapter that changes weights, such as LoRA")
    if settings.get("use_dora"):
        message = "its adapter is a DoRA, whose magnitudes transformers does not read"
        raise refused(f"{message}; merge it into its base (merge_and_unload of PEFT) and save that")
    is_beside = (folder / "config.json").is_file()
    if is_beside and not needs_base:
        return Adapter(folder, method, folder)
    if not base:
        message = f"has an adapter without a model: {ADAPTER} states no base_model_name_or_path"
        raise refused(message)
    if settings.get("revision") and not Path(base).exists():
        message = f"its adapter changes revision {settings['revision']} of {base}, which transformers ignores"
        raise refused(f"{message}; download it, and state its folder as base_model_name_or_path")
    try:
        base_folder = located(str(base), None, offline=offline)
    except InputError as error:
        message = f"its adapter changes {base}, which is not available"
        raise refused(f"{message}: {error.problems[0].message}") from None
    return Adapter(folder, method, folder if is_beside else base_folder)
