"""Models in a folder or on the hub: of the kind that is asked for, or that their configuration states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from giccs.models.folder import holds_causal, holds_seq2seq, located

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["open_any", "open_causal_model", "open_encoder", "open_encoder_decoder"]


def open_any(name: str, place: str, options: ModelOptions) -> Any:
    """Return the model of the kind that its own configuration states."""
    path = located(place, options.revision, offline=options.offline)
    if holds_causal(path):
        return open_causal_model(name, str(path), options)
    if holds_seq2seq(path):
        return open_encoder_decoder(name, str(path), options)
    return open_encoder(name, str(path), options)


def open_causal_model(name: str, place: str, options: ModelOptions) -> Any:
    """Return a causal language model."""
    from giccs.models.causal import open_causal

    return open_causal(name, options, place=place)


def open_encoder_decoder(name: str, place: str, options: ModelOptions) -> Any:
    """Return an encoder-decoder."""
    from giccs.models.seq2seq import open_seq2seq

    return open_seq2seq(name, _folder(place, options), options)


def open_encoder(name: str, place: str, options: ModelOptions) -> Any:
    """Return an encoder, or what giccs-csts train made of one."""
    from giccs.models.sentence import SentenceModel, encoder_folder
    from giccs.models.trained import TrainedModel, trained_settings

    path = _folder(place, options)
    if (settings := trained_settings(path)) is not None:
        return TrainedModel(name, path, settings, options)
    return SentenceModel(name, encoder_folder(name, path, options), options)


def _folder(place: str, options: ModelOptions) -> Path:
    return located(place, options.revision, offline=options.offline)
