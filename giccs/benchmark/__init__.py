"""The benchmark: its items, read, checked, identified and written, and built from scores.

What reads benchmarks is imported when it is first used, so that the help of commands is quick.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giccs.benchmark.files import (
        SAMPLE,
        SAMPLE_TERMS,
        Benchmark,
        check_benchmark,
        known_terms,
        read_benchmark,
        write_benchmark,
    )

__all__ = [
    "SAMPLE",
    "SAMPLE_TERMS",
    "Benchmark",
    "check_benchmark",
    "known_terms",
    "read_benchmark",
    "write_benchmark",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from giccs.benchmark import files

    return getattr(files, name)
