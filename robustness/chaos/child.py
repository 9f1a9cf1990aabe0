"""Run one case in this process, outcome as JSON: `python -m robustness.chaos.child MODULE NUMBER FOLDER`.

The process adopts orphaned descendants and kills them at its end.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.faults import unshare_mounts
from robustness.chaos.processes import kill_descendants

ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


def attempt(case: Case, folder: Path) -> tuple[str, str]:
    """Run a case; return its state and detail."""
    if missing := case.needs():
        return "not run", missing
    try:
        return "kept", case.run(folder)
    except PromiseBrokenError as broken:
        return "BROKEN", str(broken)
    except Exception as error:  # a case that fails does not show that the promise is kept
        traceback.print_exc()
        return "BROKEN", f"the case itself failed: {type(error).__name__}: {error}"


def main(module: str, number: str, folder: str) -> None:
    """Run the case and print its outcome; all other output goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)
    unshare_mounts()
    try:
        state, detail = attempt(import_module(module).CASES[int(number)], Path(folder))
    finally:
        kill_descendants(os.getpid())
    os.write(answer, json.dumps([state, detail]).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
