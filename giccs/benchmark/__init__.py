"""The benchmark: its items, read, checked, identified and written, and built from scores."""

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
