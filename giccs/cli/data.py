"""How every command describes the benchmark that it takes."""

from __future__ import annotations

__all__ = ["DATA_HELP"]

DATA_HELP = "A benchmark JSONL file, a folder with the GiCCS release, a hub id, or giccs-sample."
