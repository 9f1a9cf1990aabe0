"""The benchmark: its items, with reading, validation, identification, writing, and creation from scores.

Readers of benchmarks are imported on first use, so that the help of commands is fast.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giccs.benchmark.files import (
        SAMPLE,
        SAMPLE_TERMS,
        SAMPLES,
        Benchmark,
        check_benchmark,
        known_terms,
        read_benchmark,
        sample_file,
        write_benchmark,
    )

__all__ = [
    "SAMPLE",
    "SAMPLES",
    "SAMPLE_TERMS",
    "Benchmark",
    "check_benchmark",
    "known_terms",
    "read_benchmark",
    "sample_file",
    "write_benchmark",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from giccs.benchmark import files

    return getattr(files, name)
