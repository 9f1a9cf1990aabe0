"""A trained model as a folder, and from it again: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from bws.problems import InputError, Problem
from bws.textio import write_atomic
from giccs.progress import Progress, silent
from giccs.tasks.csts.encoders.base import Tokens, load_tokens
from giccs.tasks.csts.encoders.inputs import Batches, Units
from giccs.tasks.csts.encoders.scorer import Scorer
from giccs.tasks.csts.encoders.settings import Settings
from giccs.tasks.csts.records import Instance

__all__ = ["Trained", "load_trained", "save_trained"]

SETTINGS = "settings.json"
WEIGHTS = "model.safetensors"
AT_ONCE = 64


@dataclass(frozen=True)
class Trained:
    """A trained model that scores rows."""

    settings: Settings
    scorer: Scorer
    tokens: Tokens

    def predict(self, rows: Sequence[Instance], progress: Progress = silent) -> NDArray[np.float64]:
        """Return (N,) similarities: cosines, or of a cross-encoder numbers about from 0 to 1."""
        self.scorer.eval()
        encoded = Units([(one,) for one in rows], self.tokens, self.settings)
        found = [*progress(self._batches(encoded), "scoring", -(-len(rows) // AT_ONCE))]
        return np.concatenate([np.empty(0), *found])

    def _batches(self, rows: Units) -> Iterator[NDArray[np.float64]]:
        collate = Batches(self.tokens.tokenizer.pad_token_id)
        for start in range(0, len(rows), AT_ONCE):
            batch = collate([rows[n] for n in range(start, min(start + AT_ONCE, len(rows)))])
            with torch.no_grad():
                yield self.scorer(batch["input_ids"], batch["attention_mask"]).double().numpy()


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
    write_atomic(part / SETTINGS, json.dumps(dict(settings.document()), indent=2) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def load_trained(folder: str | os.PathLike[str]) -> Trained:
    """Read what `save_trained` wrote; InputError where the folder holds no such model."""
    from transformers import AutoConfig, AutoModel

    path = Path(folder)
    if not all((path / name).is_file() for name in (SETTINGS, WEIGHTS)):
        message = f"holds no trained model; {SETTINGS} and {WEIGHTS} are expected"
        raise InputError(Problem(str(folder), None, message))
    settings = _settings(path / SETTINGS)
    # False, not left out: transformers would ask at the terminal whether to run a stranger's code.
    config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    weights = load_file(path / WEIGHTS)
    build: Any = AutoModel.from_config
    try:
        encoder = build(config, add_pooling_layer=False, trust_remote_code=False)
    except TypeError:  # architectures without such a layer
        encoder = build(config, trust_remote_code=False)
    scorer = Scorer(encoder, settings)
    scorer.load_state_dict(weights)
    return Trained(settings, scorer, load_tokens(str(folder), path, settings.max_length))


def _settings(path: Path) -> Settings:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in fields(Settings)}
        values = {name: value for name, value in document.items() if name in known}
        return Settings(**values | {"seeds": tuple(values["seeds"])})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(Problem(str(path), None, f"is not what was saved ({error})")) from None
