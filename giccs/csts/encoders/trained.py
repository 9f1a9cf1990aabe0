"""A trained model as a folder, and from it again: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bws.problems import InputError, Problem
from bws.textio import write_atomic
from giccs.csts.encoders.base import Tokens, load_tokens
from giccs.csts.encoders.inputs import Batches, Units, model_inputs
from giccs.csts.encoders.scorer import Scorer
from giccs.csts.encoders.settings import Settings, settings_of, trained_document
from giccs.csts.records import Instance
from giccs.models.checkpoint import first_line
from giccs.models.trained import SETTINGS
from giccs.models.weights import LoadingReport, check_weights
from giccs.progress import Progress, silent

__all__ = ["Trained", "load_trained", "save_trained"]

WEIGHTS = "model.safetensors"
AT_ONCE = 64


@dataclass(frozen=True)
class Trained:
    """A trained model that scores rows."""

    settings: Settings
    scorer: Scorer
    tokens: Tokens

    def predict(
        self, rows: Sequence[Instance], progress: Progress = silent, batch_size: int = AT_ONCE
    ) -> NDArray[np.float64]:
        """Return (N,) similarities: cosines, or of a cross-encoder numbers about from 0 to 1."""
        self.scorer.eval()
        encoded = Units([(one,) for one in rows], self.tokens, self.settings)
        batches = self._batches(encoded, batch_size)
        found = [*progress(batches, "scoring", -(-len(rows) // batch_size))]
        return np.concatenate([np.empty(0), *found])

    def _batches(self, rows: Units, size: int) -> Iterator[NDArray[np.float64]]:
        collate = Batches(self.tokens.tokenizer.pad_token_id)
        device = next(self.scorer.parameters()).device
        for start in range(0, len(rows), size):
            batch = collate([rows[n] for n in range(start, min(start + size, len(rows)))])
            inputs = {name: tensor.to(device) for name, tensor in model_inputs(batch).items()}
            with torch.no_grad():
                yield self.scorer(**inputs).double().cpu().numpy()


def save_trained(
    scorer: Scorer, tokens: Tokens, settings: Settings, folder: str | os.PathLike[str]
) -> None:
    """Write a trained model; the folder takes its name when all is in it, in place of what was there."""
    target = Path(folder)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    weights = {name: one.detach().cpu().contiguous() for name, one in scorer.state_dict().items()}
    save_file(weights, part / WEIGHTS, metadata={"format": "pt"})
    config: Any = scorer.encoder.config
    config.save_pretrained(part)
    tokens.tokenizer.save_pretrained(part)
    write_atomic(part / SETTINGS, json.dumps(dict(trained_document(settings)), indent=2) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def load_trained(folder: str | os.PathLike[str], device: str = "cpu") -> Trained:
    """Read what `save_trained` wrote.

    Raises InputError if the folder has no such model, or if its weights do not match its settings.
    """
    path = Path(folder)
    if not all((path / name).is_file() for name in (SETTINGS, WEIGHTS)):
        message = f"holds no trained model; {SETTINGS} and {WEIGHTS} are expected"
        raise InputError(Problem(str(folder), None, message))
    settings = _settings(path / SETTINGS)
    tokens = load_tokens(str(folder), path, settings.max_length)
    try:
        scorer = Scorer(_empty_encoder(path), settings)
        _fill(scorer, load_file(path / WEIGHTS))
        return Trained(settings, scorer.to(device).eval(), tokens)
    except Exception as error:  # the frameworks raise many kinds
        message = f"cannot be loaded: {first_line(error)}"
        raise InputError(Problem(str(folder), None, message)) from error


def _empty_encoder(path: Path) -> nn.Module:
    """Return the encoder that a configuration describes, with random weights."""
    from transformers import AutoConfig, AutoModel

    # False, not left out: transformers would ask at the terminal whether to run a stranger's code.
    config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    build: Any = AutoModel.from_config
    try:
        encoder: nn.Module = build(config, add_pooling_layer=False, trust_remote_code=False)
    except TypeError:  # architectures without such a layer
        encoder = build(config, trust_remote_code=False)
    return encoder


def _fill(scorer: Scorer, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a scorer; ValueError unless they are exactly its own."""
    own = scorer.state_dict()
    report = LoadingReport(
        f"the {scorer.encoding}-encoder of {SETTINGS}",
        prefix="",
        missing=tuple(sorted(own.keys() - weights.keys())),
        unexpected=tuple(sorted(weights.keys() - own.keys())),
        mismatched=tuple(
            name
            for name in sorted(own.keys() & weights.keys())
            if own[name].shape != weights[name].shape
        ),
    )
    if unused := check_weights([report]):  # a head, which no trained model has to spare
        raise ValueError(f"its weights do not match {report.architecture}: {unused}")
    scorer.load_state_dict(weights)


def _settings(path: Path) -> Settings:
    try:
        return settings_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, AttributeError, RecursionError) as error:
        message = f"are not the settings of a trained model: {error}"
        raise InputError(Problem(str(path), None, message)) from None
