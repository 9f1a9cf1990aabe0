"""Run `giccs annotate` in processes that kill themselves at a given step.

Reads one JSON object per line, {"arguments": [...], "kill": n, "endpoint": address of the service or null,
"environment": {...}}, runs the command in a forked process and writes one, {"status": exit status or minus
the signal, "steps": [reached steps]}. Steps are before and after each commit of the ledger and each call of
the service; kill 0 means never.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

import httpx2

from mturk.cli import main
from mturk.study import client, ledger

ROOT = Path(__file__).parents[3]
USED = (
    "bws.adaptive", "bws.files", "giccs.benchmark.assemble", "jinja2", "mturk.cli.prolific",
    "mturk.cli.publish", "mturk.cli.review", "mturk.cli.rounds", "mturk.kinds.tuples.plan",
    "mturk.study.bonus", "mturk.study.prolific", "mturk.study.review", "mturk.study.status",
    "mturk.study.top_up", "mturk.study.valid_answers", "polars", "scipy.stats", "tqdm",
)  # fmt: skip
"""Modules that are imported once, not in each process again."""


class KillableProcess:
    """A process that runs commands in forks of itself, each of which may be killed at a step."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def run(self, *arguments, endpoint=None, kill=0):
        """Run a command; return its exit status, or minus the signal, and the steps that it has reached."""
        job = {
            "arguments": [str(argument) for argument in arguments], "kill": kill, "endpoint": endpoint,
            "environment": {**os.environ},
        }  # fmt: skip
        print(json.dumps(job), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(120) == 0
        self.process.stdout.close()


class Steps:
    def __init__(self, kill, pipe):
        self.kill, self.pipe, self.count = kill, pipe, 0

    def reach(self, label):
        self.count += 1
        os.write(self.pipe, f"{label}\n".encode())
        if self.count == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_ledger(self):
        transaction = ledger.Ledger.transaction

        @contextmanager
        def watched(book):
            with transaction(book) as connection:
                yield connection
                self.reach("before commit")
            self.reach("after commit")

        ledger.Ledger.transaction = watched

    def watch_requests(self):
        request = httpx2.Client.request

        def watched(connection, method, path, **settings):
            self.reach(f"before {method} {path}")
            response = request(connection, method, path, **settings)
            self.reach(f"after {method} {path}")
            return response

        httpx2.Client.request = watched

    def watch_calls(self, made):
        events = made.meta.events
        events.register("before-send.mturk", lambda request, **_: self.reach(_call(request)))
        events.register("after-call.mturk", lambda model, **_: self.reach(f"after {model.name}"))
        client.connect = lambda endpoint: made


def _call(request):
    return f"before {request.headers['X-Amz-Target'].decode().partition('.')[2]}"


def run(arguments, kill, made):
    """Run the command in a forked process; return its status and steps."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        steps = Steps(kill, writing)
        steps.watch_ledger()
        steps.watch_requests()
        if made:
            steps.watch_calls(made)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 70
        try:
            main(arguments, prog_name="mturk-hits")
        except SystemExit as end:
            status = end.code or 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as pipe:
        reached = pipe.read().split("\n")[:-1]
    _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "steps": reached}


def changes(step):
    """Return whether something has changed at a step, or is not yet committed."""
    reads = any(word in step for word in ("List", "Get", "GET", "cost"))
    return step == "before commit" or (step.startswith("after ") and not reads)


def first_of_each(steps):
    """Return the number of the first step of each kind at which something has changed."""
    return sorted({steps.index(step) + 1 for step in steps if changes(step)})


@cache
def client_of(endpoint):
    """Return a client, which forks use, so that none of them has to read botocore's models again."""
    return client.connect(client.resolve(endpoint))


def serve():
    """Run the commands that standard input names."""
    for name in USED:
        import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        os.environ.clear()
        os.environ.update(job["environment"])
        made = client_of(job["endpoint"]) if job["endpoint"] else None
        gc.freeze()
        print(json.dumps(run(job["arguments"], job["kill"], made)), flush=True)


if __name__ == "__main__":
    serve()
