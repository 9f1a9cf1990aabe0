"""Fault-injection campaign: real faults against real processes, and a table of the outcomes.

    python -m robustness.chaos [--only TEXT] [--list] [--json] [-o docs/operations/measurements.md]

Each case runs in a separate process and folder. With -o the table replaces the block `chaos` of a document.
The exit code is 1 if a promise was broken; a case whose requirements are missing is "not run".
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.machine import provenance, replace_block
from robustness.chaos.cases import MODULES, CaseRef, Outcome, State, markdown, select_cases, summary
from robustness.chaos.processes import kill_descendants

CASE_TIMEOUT_SECONDS = 300.0
"""Timeout of a case."""
CLEANUP_SECONDS = 20.0
"""Time for a case to clean up after Ctrl-C."""


def run_case(case_ref: CaseRef, limit: float = CASE_TIMEOUT_SECONDS) -> Outcome:
    """Run a case in a separate process and folder."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="giccs-chaos-", ignore_cleanup_errors=True) as name:
        (folder := Path(name, "case")).mkdir()
        Path(name).chmod(0o755)  # PostgreSQL may run as another user
        state, detail = _run_child(case_ref, folder, Path(name, "log"), limit)
    case = case_ref.case
    seconds = time.monotonic() - start
    return Outcome(case.fault, case.target, case.promise, state, detail, seconds)


def _run_child(case_ref: CaseRef, folder: Path, log: Path, limit: float) -> tuple[State, str]:
    command = [
        sys.executable,
        "-m",
        "robustness.chaos.child",
        case_ref.module,
        str(case_ref.number),
    ]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=limit)
        state, detail = json.loads(printed)
    except subprocess.TimeoutExpired:
        state, detail = "BROKEN", f"not done after {limit:.0f} s"
    except ValueError:
        state, detail = (
            "BROKEN",
            f"the case ended with exit code {process.returncode} and without outcome",
        )
    finally:
        _end(process)
    if state == "BROKEN":
        print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
    return state, detail


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a running case, and kill it and its descendants after the clean-up time."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(CLEANUP_SECONDS)
        except subprocess.TimeoutExpired:
            kill_descendants(process.pid)
            process.kill()
            process.wait()


def main(arguments: list[str] | None = None, modules: tuple[str, ...] = MODULES) -> int:
    """Run the campaign; return the exit code."""
    options = _options(arguments)
    case_refs = select_cases(options.only, modules)
    if options.list:
        print("\n".join(f"{ref.case.fault} | {ref.case.target}" for ref in case_refs))
        return 0
    outcomes = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        for number, case_ref in enumerate(case_refs, 1):
            start = f"{number}/{len(case_refs)} {case_ref.case.fault} | {case_ref.case.target} | "
            print(start, end="", file=sys.stderr, flush=True)
            outcomes.append(outcome := run_case(case_ref))
            print(f"{outcome.state}: {outcome.told} [{outcome.seconds:.0f} s]", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted; nothing was written", file=sys.stderr)
        return 130
    _write_outcomes(outcomes, options)
    return int(any(outcome.state == "BROKEN" for outcome in outcomes))


def _write_outcomes(outcomes: list[Outcome], options: argparse.Namespace) -> None:
    """Print the table and write it into the document."""
    print(
        json.dumps([asdict(outcome) for outcome in outcomes])
        if options.json
        else markdown(outcomes)
    )
    print(summary(outcomes), file=sys.stderr)
    if options.output:
        above = f"{provenance('python -m robustness.chaos')}\n\n{summary(outcomes)}"
        replace_block(options.output, "chaos", f"{above}\n\n{markdown(outcomes)}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m robustness.chaos")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases that contain this text")
    parser.add_argument("--list", action="store_true", help="list the cases and run none")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "-o", "--output", type=Path, help="document whose block `chaos` is replaced"
    )
    options = parser.parse_args(arguments)
    if options.only and options.output:
        parser.error("--only and -o cannot be combined: the document contains the whole campaign")
    if options.output and "<!-- chaos: end -->" not in options.output.read_text(encoding="utf-8"):
        parser.error(f"{options.output} has no block `chaos`")
    return options


if __name__ == "__main__":
    sys.exit(main())
