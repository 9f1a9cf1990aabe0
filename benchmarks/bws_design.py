"""Designs of 2N 4-tuples: time, memory and repeated pairs, in a separate process with one thread.

Figures of other programs were measured on another machine with two shared cores: Kiritchenko and Mohammad's
generator took 0.72 s, 12.2 s and 303 s at 1k, 10k and 100k items, and repeats 107 pairs at 1k; Hollis's
took 0.01 s, 0.35 s and 48 s (65 pairs at 1k).
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.harness import cost_of_code

MAKE = (
    "from bws.design import make_tuples; design = make_tuples([f'i{{n}}' for n in range({n})], 4)"
)
AUDIT = """
from bws.design import audit
a = audit(design)
print(a.pairs_repeated, f"{{a.appearances_min}}..{{a.appearances_max}}", a.position_spread)
"""
SIZES = (1_000, 10_000, 100_000)


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print("giccs design: 2N 4-tuples, one thread, imports included")
    print("     items   wall s  peak MiB  repeated pairs  appearances  positions differ by")
    for n in sizes:
        cost = cost_of_code(MAKE.format(n=n))
        code = f"{MAKE}\n{AUDIT}".format(
            n=n
        )  # in a child process, because the peak memory of the parent is inherited
        scores = subprocess.check_output([sys.executable, "-c", code], text=True).split()
        repeated, appearances, positions = scores
        print(
            f"{n:>10,} {cost.wall:>8.2f} {cost.peak:>9.0f} {repeated:>15} {appearances:>12} "
            f"{positions:>20}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true", help="also a million items")
    main((*SIZES, 1_000_000) if parser.parse_args().large else SIZES)
