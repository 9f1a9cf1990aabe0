"""Designs of 2N 4-tuples: time, memory and repeated pairs, in a process of its own with one thread.

The peers' figures were measured on another machine of two shared cores: Kiritchenko and Mohammad's
generator took 0.72 s, 12.2 s and 303 s at 1k, 10k and 100k items, and repeats 107 pairs at 1k; Hollis's
took 0.01 s, 0.35 s and 48 s (65 pairs at 1k).
"""

from __future__ import annotations

import argparse

from benchmarks.harness import cost_of_code
from bws.design import audit, make_tuples

MAKE = "from bws.design import make_tuples; make_tuples([f'i{{n}}' for n in range({n})], 4)"
SIZES = (1_000, 10_000, 100_000)


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print("bws-make-tuples: 2N 4-tuples, one thread, imports included")
    print("     items   wall s  peak MiB  repeated pairs  appearances  positions differ by")
    for n in sizes:
        cost = cost_of_code(MAKE.format(n=n))
        found = audit(make_tuples([f"i{number}" for number in range(n)], 4))
        shown = f"{found.appearances_min}..{found.appearances_max}"
        print(
            f"{n:>10,} {cost.wall:>8.2f} {cost.peak:>9.0f} {found.pairs_repeated:>15} "
            f"{shown:>12} {found.position_spread:>20}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true", help="a million items as well")
    main((*SIZES, 1_000_000) if parser.parse_args().large else SIZES)
