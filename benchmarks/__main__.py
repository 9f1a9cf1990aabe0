"""Run all benchmarks: python -m benchmarks, or make bench."""

from __future__ import annotations

from benchmarks import (
    bws_design,
    bws_files,
    bws_reliability,
    bws_scoring,
    csts_pairs,
    evalrank,
    evaluation,
    explorer,
    multiple_choice,
    static_vectors,
    study_load,
)

EVERY = (
    bws_design,
    bws_files,
    bws_scoring,
    bws_reliability,
    csts_pairs,
    evalrank,
    evaluation,
    explorer,
    multiple_choice,
    static_vectors,
    study_load,
)

if __name__ == "__main__":
    for benchmark in EVERY:
        print(f"\n== {benchmark.__name__}: {(benchmark.__doc__ or '').splitlines()[0]}", flush=True)
        benchmark.main()
