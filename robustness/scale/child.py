"""One measurement in a process of its own: python -m robustness.scale.child PIECE N [TEXT] prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from benchmarks.harness import ONE_THREAD

__all__ = ["PIECES", "in_child"]

Found = dict[str, float]


def in_child(piece: str, n: int, place: str = "") -> Found:
    """Run a piece of work of size `n` in a process of its own with one thread; what it measured."""
    command = [sys.executable, "-m", "robustness.scale.child", piece, str(n), place]
    environment = os.environ | ONE_THREAD | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{piece} of {n:,} failed: {done.stderr[-2000:]}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def _files(n: int, place: str) -> Found:
    from robustness.scale.annotations import made

    return made(n, place)


def _scores(n: int, place: str) -> Found:
    from robustness.scale.annotations import scored

    return scored(place)


def _requests(n: int, place: str) -> Found:
    from robustness.scale.filled import requests

    return requests(place, n)


def _heavy(n: int, place: str) -> Found:
    from robustness.scale.filled import requests

    return requests(place, n, workers=20)


def _plan(n: int, place: str) -> Found:
    from robustness.scale.requesting import planned

    return planned(n, place)


def _studied(n: int, place: str) -> Found:
    from robustness.scale.requesting import studied

    return studied(n, place)


def _judged(n: int, place: str) -> Found:
    from robustness.scale.requesting import judged_from

    return judged_from(n, place)


def _encoding(n: int, place: str) -> Found:
    from robustness.scale.evaluating import encoding

    return encoding(n)


def _store(n: int, place: str) -> Found:
    from robustness.scale.evaluating import store

    return store(n, place)


def _report(n: int, place: str) -> Found:
    from robustness.scale.evaluating import reported

    return reported(n, place)


def _tokens(n: int, place: str) -> Found:
    from robustness.scale.evaluating import tokens

    return tokens()


PIECES: dict[str, Callable[[int, str], Found]] = {
    "files": _files,
    "scores": _scores,
    "requests": _requests,
    "heavy": _heavy,
    "plan": _plan,
    "judged": _judged,
    "studied": _studied,
    "encoding": _encoding,
    "store": _store,
    "report": _report,
    "tokens": _tokens,
}

if __name__ == "__main__":
    print(json.dumps(PIECES[sys.argv[1]](int(sys.argv[2]), sys.argv[3])))
