"""Handling of Ctrl-C outside of a command's function: during imports, and where Python ignores it.

Python raises KeyboardInterrupt between any two instructions. While a console script imports its modules,
before click runs, nothing catches it. Inside a callback of the interpreter (of a weak reference or a
destructor) it is printed and ignored. Both would print a traceback. An interrupt before the import of this
module, during the start of the interpreter, cannot be caught here.
"""

from __future__ import annotations

import sys  # No other imports: until `handle_interrupts` has run, an interrupt prints a traceback.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

REPEAT_AFTER_SECONDS = 0.05
"""After this time, the callback in which an interrupt was ignored has returned."""


def handle_interrupts() -> None:
    """End the program with one line for an uncaught interrupt; repeat an ignored one."""
    if getattr(sys.excepthook, "handles_interrupts", False):
        return
    show, drop = sys.excepthook, sys.unraisablehook

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            show(kind, error, trace)
        elif sys.stderr is not None:
            sys.stderr.write("\nAborted!\n")

    def unraisablehook(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            drop(unraisable)
        elif not sys.is_finalizing():
            from threading import Timer

            Timer(REPEAT_AFTER_SECONDS, _interrupt_main_thread).start()

    excepthook.handles_interrupts = True  # type: ignore[attr-defined]
    sys.excepthook, sys.unraisablehook = excepthook, unraisablehook


def _interrupt_main_thread() -> None:
    import _thread
    import signal
    import threading

    ident = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and ident is not None:
        signal.pthread_kill(ident, signal.SIGINT)  # This also ends a blocking call.
    else:
        _thread.interrupt_main()
