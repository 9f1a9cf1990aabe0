"""A training that ends its own process with SIGKILL: train MODEL FOLDER STEPS (0: it may end)."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from giccs.csts.encoders.runs import train
from giccs.csts.encoders.settings import Machine, Settings
from giccs.csts.encoders.splits import read_splits


def settings(model):
    """Four epochs of three steps each: 24 rows, 8 a step, in pairs; the second is the best."""
    return Settings(
        str(model), objective="quad+mse", pooling="mean", transform=True, epochs=4, batch=8,
        learning_rate=1e-3, seeds=(6,), select="best",
    )  # fmt: skip


def small(train=24, rest=16):
    whole = read_splits("csts-sample")
    return replace(
        whole, train=whole.train[:train], validation=whole.validation[:rest], test=whole.test[:rest]
    )


def killing(steps):
    """Return a progress that kills the process before a step."""

    def until(work, label, total=None):
        for step, one in enumerate(work):
            if steps and step == steps:
                os.kill(os.getpid(), signal.SIGKILL)
            yield one

    return until


if __name__ == "__main__":
    _, model, folder, steps = sys.argv[1:]
    train(settings(model), small(), Path(folder), Machine("cpu"), killing(int(steps)))
