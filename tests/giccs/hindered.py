"""Tasks whose workers are lost: sent to Ray's workers as they stand here."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from giccs.tasks.pairwise import PairwiseSTS


@dataclass(frozen=True, slots=True)
class OnceStuck(PairwiseSTS):
    """Tells its node through a pipe and waits to be killed; the next time it does its work."""

    folder: str = ""

    def measure(self, model, data, progress):
        try:
            (Path(self.folder) / "begun").touch(exist_ok=False)
        except FileExistsError:
            return PairwiseSTS.measure(self, model, data, progress)
        import ray

        with open(Path(self.folder) / "pipe", "w", encoding="utf-8") as pipe:
            pipe.write(ray.get_runtime_context().get_node_id())
        threading.Event().wait()
        raise AssertionError("nobody killed this worker")


@dataclass(frozen=True, slots=True)
class Deadly(PairwiseSTS):
    """Kills every worker that does it, as the system does where memory ends."""

    folder: str = ""

    def measure(self, model, data, progress):
        with open(Path(self.folder) / "deaths", "a", encoding="utf-8") as deaths:
            deaths.write(f"{os.getpid()}\n")
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Faulty(PairwiseSTS):
    """Fails as code with a mistake does."""

    def measure(self, model, data, progress):
        raise ZeroDivisionError("a mistake")


@dataclass(frozen=True, slots=True)
class Threads(PairwiseSTS):
    """Fails with the number of threads that the worker's libraries take."""

    def measure(self, model, data, progress):
        import torch

        raise ZeroDivisionError(f"{torch.get_num_threads()} threads")


class NoWorker:
    """A worker that cannot start, as on a node where giccs is not installed."""

    def __init__(self, *arguments):
        raise ModuleNotFoundError("No module named 'giccs'")

    def evaluate(self, task, data):
        raise AssertionError("it has started")
