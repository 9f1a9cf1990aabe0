"""Where models are asked: one after the other in this process, or spread over a Ray cluster."""

from __future__ import annotations

__all__ = ["ENGINES", "EngineError"]

ENGINES = ("local", "ray")


class EngineError(RuntimeError):
    """Some of the asks came to no result, for reasons that lie in no input; a line each."""
