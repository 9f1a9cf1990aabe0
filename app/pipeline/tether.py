"""`mturk-hits serve` as a child that never outlives its parent, whatever ends that.

The parent holds the other end of standard input. When it closes it, or is killed, the read ends, and so
does the service.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

__all__ = ["main"]

GRACE_SECONDS = 15.0
"""After so long the service is ended without asking."""


def main() -> None:
    """Serve with the arguments of `mturk-hits serve` until standard input ends."""
    from mturk.cli.service import serve

    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(sys.argv[1:], prog_name="mturk-hits serve")


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not sys.stdin: a thread that waits in it blocks the interpreter's end
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
