"""Metadata of models trained by giccs csts train, which the task csts loads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.abilities import DescribedModel
from giccs.models.checkpoint import read_json, revision
from giccs.models.devices import check_device, refuse_map
from giccs.models.quantisation import refuse_quantising

if TYPE_CHECKING:
    from giccs.models import ModelOptions

SETTINGS = "settings.json"
"""File with the settings of the training."""
KEYS = frozenset(["model", "encoding", "objective", "pooling", "texts"])
"""Settings that identify the file."""


def trained_settings(folder: Path) -> Mapping[str, Any] | None:
    """Return the settings of a model trained by giccs csts train, or None for other folders."""
    document = read_json(folder / SETTINGS)
    return document if isinstance(document, dict) and document.keys() >= KEYS else None


def described(settings: Mapping[str, Any]) -> str:
    """Return a description of a trained model and its purpose, for error messages."""
    return f"is a {settings['encoding']}-encoder trained by giccs csts train, for --task csts only"


class TrainedModel(DescribedModel):
    """The folder of a trained model and its options; the task csts loads the weights."""

    name: str

    def __init__(
        self, name: str, folder: Path, settings: Mapping[str, Any], options: ModelOptions
    ) -> None:
        refuse_map(name, options)
        refuse_quantising(name, options)
        if options.dtype not in ("auto", "float32"):
            message = f"runs in float32, as in its training; omit --dtype {options.dtype}"
            raise InputError(Problem(name, None, message))
        self.name = name
        self.folder = folder
        self.settings = settings
        self.options = options

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the scores."""
        return {"kind": "csts-train", "revision": revision(self.folder), "dtype": "float32"}

    def description(self) -> str:
        """Return a description of the model, for the error messages of tasks."""
        return described(self.settings)

    @property
    def device(self) -> str:
        """Return the device for computing scores; raise InputError if PyTorch does not have it."""
        import torch

        check_device(self.name, self.options.device)
        if self.options.device != "auto":
            return self.options.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    def environment(self) -> Mapping[str, Any]:
        """Return versions and device."""
        from importlib.metadata import version

        packages = {package: version(package) for package in ("torch", "transformers")}
        return {**packages, "device": self.device}
