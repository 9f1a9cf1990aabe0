"""Run one measurement in a separate process: python -m robustness.scale.pieces PIECE N DIRECTORY."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pkgutil import resolve_name

from benchmarks.harness import ONE_THREAD

__all__ = ["in_child"]

FUNCTIONS = {
    "files": "annotations:write_annotations",
    "scores": "annotations:score_annotations",
    "requests": "requests:many_workers",
    "heavy": "requests:few_workers",
    "plan": "study:plan_study",
    "judged": "study:write_judgments",
    "studied": "study:run_study",
    "encoding": "models:encode_texts",
    "store": "models:use_store",
    "report": "models:report_results",
    "tokens": "models:count_tokens",
}
"""Name -> function (size, folder or URL) -> figures; imported in the child process only."""


def in_child(piece: str, n: int, directory: str = "") -> dict[str, float]:
    """Run a piece of work of size `n` in a separate process with one thread; return its figures."""
    command = [sys.executable, "-m", "robustness.scale.pieces", piece, str(n), directory]
    environment = os.environ | ONE_THREAD | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{piece} of {n:,} failed: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    measure = resolve_name(f"robustness.scale.{FUNCTIONS[sys.argv[1]]}")
    print(json.dumps(measure(int(sys.argv[2]), sys.argv[3])))
