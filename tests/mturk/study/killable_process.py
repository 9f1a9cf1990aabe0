"""Run `mturk-hits` in processes that kill themselves at a given step.

Reads one JSON object per line, {"arguments": [...], "kill": n}, runs the command in a forked process and
writes one, {"status": exit status or minus the signal, "steps": [reached steps]}. Steps are before and after
each commit of the ledger and each call of the service; kill 0 means never.
"""

import json
import os
import signal
import sys
from contextlib import contextmanager
from importlib import import_module

import httpx2

from mturk.cli import main
from mturk.study import client, ledger


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


if __name__ == "__main__":
    for name in (
        "bws.files",
        "giccs.benchmark.assemble",
        "bws.adaptive",
        "mturk.cli.publish",
        "mturk.cli.rounds",
        "mturk.kinds.tuples.plan",
        "jinja2",
        "mturk.cli.prolific",
        "mturk.study.prolific",
    ):
        import_module(name)  # not in each process again
    # made before the fork and not used there, so that no process has to read botocore's models again
    boto3_client = client.connect(client.resolve(sys.argv[1])) if sys.argv[1:] else None
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line), made=boto3_client)), flush=True)
