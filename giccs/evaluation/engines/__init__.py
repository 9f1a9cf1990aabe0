"""Execution engines: sequentially in this process, or on a Ray cluster."""

from __future__ import annotations

__all__ = ["ENGINES", "EngineError"]

ENGINES = ("local", "ray")


class EngineError(RuntimeError):
    """Some jobs failed for reasons other than their input; one line each."""
