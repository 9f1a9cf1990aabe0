"""Who sees whom, as the attention of an architecture takes it: for all layers, or for each kind of layer.

`visible` is (B, N, N), `depths`, the distances from the root, (B, N).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["full_mask", "layered_mask", "text_config", "window_mask"]


def full_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask (B, 1, N, N) that is added to the attention's scores."""
    import torch

    mask = torch.zeros(visible.shape, dtype=model.dtype, device=visible.device)
    return mask.masked_fill_(~visible, torch.finfo(model.dtype).min)[:, None]


def window_mask(model: Any, visible: Tensor, depths: Tensor) -> Tensor:
    """Return the mask of a model whose tokens see only so many before them."""
    distance = depths[:, :, None] - depths[:, None, :]
    return full_mask(model, visible & (distance < text_config(model).sliding_window), depths)


def layered_mask(model: Any, visible: Tensor, depths: Tensor) -> dict[str, Tensor]:
    """Return a mask for each kind of layer, of those models that mix whole and windowed attention."""
    return {
        "full_attention": full_mask(model, visible, depths),
        "sliding_attention": window_mask(model, visible, depths),
    }


def text_config(model: Any) -> Any:
    """Return the configuration of the part that reads text, of a model that may read more."""
    return model.config.get_text_config()
