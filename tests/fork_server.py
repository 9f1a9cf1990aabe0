"""Commands in new processes that need not import everything again.

A server imports the modules that most commands need, and forks for each call. The new process has the
arguments, folder, environment, standard input and outputs of its caller, and ends as a console script does:
by exit code or signal. Imports of the server are not repeated, so a test of imports, or of the start itself,
needs a real process.

The server is shared by the workers of a run, and ends when none of them is left.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIGHT = (
    "click", "numpy", "scipy.stats", "polars", "tqdm", "tabulate", "yaml", "babel", "huggingface_hub",
    "bws.cli", "bws.design", "bws.files", "bws.scoring", "bws.simulation", "bws.split_half",
    "giccs.cli.building", "giccs.cli.card", "giccs.cli.evaluation", "giccs.cli.reporting",
    "giccs.cli.statistics", "giccs.cli.validation", "giccs.evaluation.run", "giccs_app.cli",
    "giccs_app.studies.cli", "mturk.cli.publish", "mturk.cli.collect", "mturk.cli.service", "boto3",
    "mturk.service.server", "mturk.study.simulated_workers", "alembic", "httpx2",
    # imported by functions of many commands
    "babel.messages.pofile", "babel.support", "bws.adaptive.rounds", "bws.annotators", "bws.study_charts",
    "giccs.measures.ceiling", "giccs.models.causal.forward", "giccs.models.late_interaction",
    "giccs.models.objects", "giccs.report.measured", "giccs.report.model_comparison",
    "giccs.tasks.generated_choices", "giccs.tasks.multiple_choice", "giccs.tasks.pairwise",
    "mturk.cli.review", "mturk.cli.simulate", "mturk.kinds.conditions", "mturk.kinds.items",
    "mturk.kinds.sentence_pairs", "mturk.kinds.relabel", "mturk.kinds.tuples.page",
    "mturk.kinds.verification",
    "mturk.study.rounds", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.auto", "uvloop",
)  # fmt: skip
"""Imported at the start. No module of them may start a thread that its functions need."""
HEAVY = {
    r"(package|causal|encoder|static):|(train|demo|giccs demo|--sweep)$": (
        "torch",
        "sentence_transformers",
    ),
    r"(stats|demo|giccs stats|giccs demo|giccs card|--export-space)$": (
        "spacy",
        "simplemma",
        "lexicalrichness",
    ),
    r"(--figure|levels|giccs explore|demo|giccs demo)$": ("altair", "vl_convert"),
}
"""A word of a call -> modules that a process beside the server imports before the first call with it."""
MESSAGE = 2**17
"""Most bytes of a call: arguments and environment."""
STARTED: list[int] = []
"""Servers that this process has started and not left (tests/cost.py adds their CPU time)."""


class ForkServer:
    """The server of the folder, which is started if there is none."""

    def __init__(self, folder: Path, modules=LIGHT, heavy=HEAVY, environment=()):
        self.address = folder / "commands.socket"
        self._process = None
        folder.mkdir(parents=True, exist_ok=True)
        # Held as long as this process lives: the server ends when nobody holds it.
        self._users = (folder / "users").open("w")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        with (folder / "start").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not self.address.exists():
                self._start(folder, modules, heavy, dict(environment))

    def _start(self, folder, modules, heavy, environment):
        paths = [
            environment.get("PYTHONPATH"),
            str(ROOT),
            str(ROOT / "app"),
            os.environ.get("PYTHONPATH"),
        ]
        path = os.pathsep.join(filter(None, paths))
        told = {"modules": modules, "heavy": heavy, "users": str(folder / "users")}
        with (folder / "server.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(self.address), json.dumps(told)],
                env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        STARTED.append(self._process.pid)
        while not self.address.exists():
            if self._process.poll() is not None:
                raise RuntimeError((folder / "server.log").read_text())
            time.sleep(0.05)

    def scripts(self, folder: Path) -> Path:
        """Return a folder with a program for each console script, which calls the server."""
        folder.mkdir(exist_ok=True)
        for name in console_scripts():
            program = folder / name
            program.write_text(
                f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(ROOT / 'tests')!r})\n"
                f"from fork_server import main_of_script\nmain_of_script({str(self.address)!r}, {name!r})\n"
            )
            program.chmod(0o755)
        return folder

    def run(self, script, *arguments, cwd=None, env=None, stdin=None, stdout=None, timeout=300):
        """Run a console script, or Python code after `-c`; return a CompletedProcess with texts."""
        import tempfile

        with tempfile.TemporaryFile() as out:
            process = self.start(
                script, *arguments, cwd=cwd, env=env, stdin=stdin, stdout=stdout or out
            )
            try:
                code = process.wait(timeout)
            except TimeoutError:
                process.kill()
                raise
            out.seek(0)
            _, errors = process.communicate()
            return subprocess.CompletedProcess(
                [script, *arguments], code, out.read().decode(), errors
            )

    def start(self, script, *arguments, cwd=None, env=None, stdin=None, stdout=None):
        """Start a console script, or Python code after `-c`; return its process."""
        import tempfile

        reading, writing = os.pipe()
        call = call_of(script, list(map(str, arguments)), cwd or os.getcwd(), env or os.environ)
        with open(os.devnull) as none, open(writing, "wb") as out:
            errors = tempfile.TemporaryFile()  # noqa: SIM115 - the process has it
            connection = connect(str(self.address))
            files = [one.fileno() for one in (stdin or none, stdout or out, errors)]
            socket.send_fds(connection, [call], files)
            return Process(connection, open(reading), errors)

    def close(self):
        """Leave the server, and wait a moment for its end."""
        self._users.close()
        if self._process is not None:
            STARTED.remove(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):  # others use it
                self._process.wait(3)


class Process:
    """A process of the server, used as those of subprocess.Popen are; `stdout` is a pipe."""

    def __init__(self, connection, stdout, stderr):
        self.stdout, self.returncode = stdout, None
        self._connection, self._stderr = connection, stderr
        self.pid = received(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.communicate()

    def send_signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            if self.returncode is None:
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=300):
        """Return the exit code, or minus the signal."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            self.returncode = received(self._connection)
            self._connection.close()
        return self.returncode

    def communicate(self, timeout=300):
        """Wait for the end; return the rest of the standard output, and standard error."""
        if self.stdout.closed:
            return "", ""
        with self.stdout, self._stderr as errors:
            output = self.stdout.read()
            self.wait(timeout)
            errors.seek(0)
            return output, errors.read().decode()


def console_scripts() -> dict[str, str]:
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


# The caller


def call_of(script, arguments, cwd, environment) -> bytes:
    call = {
        "script": script,
        "arguments": arguments,
        "cwd": str(cwd),
        "environment": dict(environment),
    }
    return json.dumps(call).encode()


def connect(address):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    return connection


def received(connection) -> int:
    """Return the number of a message: that of the process, or its exit code (negative: its signal)."""
    message = connection.recv(8)
    if not message:
        raise RuntimeError("the server of commands has ended")
    return struct.unpack("q", message)[0]


def main_of_script(address, script):
    """Do as the console script does, signals included; called by the programs of `scripts`."""
    connection = connect(address)
    call = call_of(script, sys.argv[1:], os.getcwd(), os.environ)
    socket.send_fds(connection, [call], [0, 1, 2])
    pid = received(connection)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = received(connection)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


# The server


def next_call(address, heavy, users):
    """Accept calls; return each in a new process."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{address}.new")
    listener.listen(64)
    listener.settimeout(0.5)
    os.rename(f"{address}.new", address)
    gc.freeze()
    large = None
    while True:
        reap()
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            end_if_unused(users, address)
            continue
        connection.setblocking(True)
        request, files, *_ = socket.recv_fds(connection, MESSAGE, 3)
        call = json.loads(request)
        if not any(has_word(call, word) for word in heavy):
            if not os.fork():
                listener.close()
                if large is not None:
                    large.close()
                return started(call, connection, files)
        else:
            if large is None:
                large, calls = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                if not os.fork():
                    for one in (listener, connection, large):
                        one.close()
                    close(files)
                    return next_call_with_imports(calls, heavy)
                calls.close()
            socket.send_fds(large, [request], [connection.fileno(), *files])
        connection.close()
        close(files)


def next_call_with_imports(calls, heavy):
    """Accept calls that need large imports; return each in a new process.

    The server itself remains small, because a process that is forked from a large one takes longer to
    start and to end.
    """
    imported = set()
    calls.settimeout(0.5)
    while True:
        reap()
        try:
            request, files, *_ = socket.recv_fds(calls, MESSAGE, 4)
        except TimeoutError:
            continue
        if not request:  # the server has ended
            os._exit(0)
        call = json.loads(request)
        for word in [word for word in heavy if word not in imported and has_word(call, word)]:
            imported.add(word)
            import_modules(heavy[word])
            gc.freeze()
        connection, *files = files
        if not os.fork():
            calls.close()
            return started(call, socket.socket(fileno=connection), files)
        close([connection, *files])


def started(call, connection, files):
    """Tell the caller, from another process, how this one ends; return the call with its files in place."""
    if pid := os.fork():
        report(connection, pid, files)
    connection.close()
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    return call


def close(files):
    for file in files:
        os.close(file)


def has_word(call, pattern):
    return any(re.match(pattern, word) for word in [call["script"], *call["arguments"]])


def reap():
    """Wait for the processes that have ended, which adds their CPU time to that of the server."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def report(connection, pid, files):
    """Tell the caller the process and how it ends."""
    close(files)
    for number in (pid, None):
        if number is None:
            number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):  # the caller has ended
            connection.send(struct.pack("q", number))
    os._exit(0)


def end_if_unused(users, address):
    with open(users) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        os.unlink(address)
        os._exit(0)


def import_modules(names):
    for name in names:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)


def main():
    address, told = sys.argv[1:]
    sys.path.pop(0)  # the folder of this file
    options = json.loads(told)
    targets = console_scripts()
    import_modules(options["modules"])
    call = next_call(address, options["heavy"], options["users"])
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = [call["script"], *call["arguments"]]
    if datasets := sys.modules.get("datasets"):  # it reads its variables at import
        datasets.config.HF_DATASETS_CACHE = Path(
            os.environ.get("HF_DATASETS_CACHE", datasets.config.HF_DATASETS_CACHE)
        )
    if call["script"] == "-c":
        code = sys.argv.pop(1)
        end(exit_code(exec, code, {"__name__": "__main__"}))
    module, function = targets[call["script"]].split(":")
    end(exit_code(getattr(importlib.import_module(module), function)))


def exit_code(function, *arguments):
    """Return what a call returns or exits with."""
    try:
        return function(*arguments)
    except SystemExit as exception:
        return exception.code


def end(code):
    """Exit without freeing each object of the server, which takes longer than most commands.

    A message as code, or outputs that cannot be written, are left to the interpreter.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        if code is None or isinstance(code, int):
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit((code or 0) & 255)
    sys.exit(code)


if __name__ == "__main__":
    main()
