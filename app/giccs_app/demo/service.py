"""The annotation service of the demo: a real `giccs annotate serve` process on free ports.

It ends with its parent, which holds the other end of its standard input: when the parent closes it or is
killed, the service reads the end of the file and stops (`main` runs in the child).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bws.base.text import read_text

logger = logging.getLogger(__name__)

STOP_SECONDS = 20.0
GRACE_SECONDS = 15.0
"""Time after a request to stop until the child terminates itself."""


@contextmanager
def service(database: Path, log: Path) -> Iterator[str]:
    """Serve `database` and yield the address of the API and the worker site; messages go to `log`.

    Raises OSError with the last line of the log if the service does not start.
    """
    command = [sys.executable, "-P", "-m", "giccs_app.demo.service", "--quiet", "--json"]
    command += ["--db", str(database), "--port", "0", "--frame-port", "0"]
    # keys in the environment would exclude the simulated workers
    environment = {name: value for name, value in os.environ.items() if name != "GICCS_KEYS"}
    with log.open("ab") as log_file:
        process = subprocess.Popen(  # noqa: S603 - this program itself, by its own path
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log_file, env=environment,
            start_new_session=True,  # Ctrl-C reaches only this process, which stops the service
        )  # fmt: skip
    try:
        address = _address(process, log)
        logger.debug(
            "process %d serves %s at %s and logs to %s", process.pid, database, address, log
        )
        yield address
    finally:
        _end(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    document = json.loads(line or "{}")
    if "api" not in document:
        last_line = read_text(log).strip().splitlines()[-1:] or ["no message"]
        reason = document.get("error", last_line[0])
        raise OSError(f"giccs annotate serve did not start: {reason} (see {log})")
    return str(document["api"])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the process by closing its standard input; kill it after a timeout."""
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Serve with the arguments of `giccs annotate serve` until standard input ends."""
    from mturk.cli.service import serve

    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(sys.argv[1:], prog_name="giccs annotate serve")


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not sys.stdin, which would block the exit of the interpreter
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
