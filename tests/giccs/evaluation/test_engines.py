"""The Ray engine on clusters of this machine: the same bits, lost nodes and workers, faults, Ctrl-C."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.evaluation.engines import EngineError
from giccs.evaluation.engines import cluster as engine
from giccs.evaluation.engines.cluster import (
    MAX_RESTARTS,
    _connection_message,
    _n_gpus,
    _thread_variables,
    run_on_ray,
)
from giccs.evaluation.engines.local import EvaluationJob, distinct_jobs
from giccs.evaluation.engines.worker import THREAD_VARIABLES
from giccs.evaluation.task_results import environment
from giccs.measures.results import Store
from giccs.models import ModelOptions, open_model
from giccs.models.model_errors import is_memory_error
from giccs.tasks import TaskKind, pairwise
from giccs.tasks.pairwise import PairwiseSTS
from tests.nightly import others_nightly

from .. import hindered

OWN = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster():
    """A head that does no work, and two nodes with a CPU each: three raylets, as on three machines."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(hindered)
    seen = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 1000,
        "health_check_failure_threshold": 2,
    }
    head = OWN | {"num_cpus": 0, "include_dashboard": False, "_system_config": seen}
    running = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        running.add_node(**OWN)
    yield running
    ray.shutdown()
    running.shutdown()
    ray.cloudpickle.unregister_pickle_by_value(hindered)


@pytest.fixture
def data(benchmark_file):
    return read_benchmark(benchmark_file)


def called(*arguments):
    done = CliRunner().invoke(
        evaluate, [str(argument) for argument in arguments], prog_name="giccs-eval"
    )
    return done.exit_code, done.stdout, done.stderr


def kept(folder):
    """Return each result's predictions as they lie there, and its JSON but for time and place."""
    result = {}
    for path in sorted(Path(folder).glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        del document["seconds"], document["environment"]
        result[path.name] = path.with_suffix(".parquet").read_bytes(), document
    return result


def asks_of(task, data, *names):
    return [EvaluationJob(open_model(name), task, data) for name in names]


@pytest.fixture
def vectors(tmp_path):
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = [
        f"{word} {n / 7:.3f} {n % 3 - 1.1:.3f}" for n, word in enumerate([*letters, "ich", "am"])
    ]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize("kinds", others_nightly(["formulas", "encoders"], "formulas"))
def test_both_engines_come_to_the_same_bits(
    cluster, tmp_path, benchmark_file, vectors, request, kinds
):
    sweep = tmp_path / "sweep.toml"
    models = ["baseline:char-ngram", f"static:{vectors}+abtt:1"]
    if kinds == "encoders":  # torch and the weights are loaded by each worker
        models = ["baseline:chance", str(request.getfixturevalue("plain_encoder"))]
    sweep.write_text(
        f"""
        [[grid]]
        models = {json.dumps(models)}
        tasks = ["pairwise-sts", "multiple-choice-sts"]
        data = ["{benchmark_file}", "giccs-sample"]
        options = {{ history = ["with", "without"] }}
        """,
        "utf-8",
    )
    arguments = ["--sweep", sweep, "--batch-size", 7, "--dtype", "float32", "--limit", 4]
    local = called(*arguments, "-o", tmp_path / "local")
    ray = called(
        *arguments, "-o", tmp_path / "ray", "--engine", "ray", "--address", cluster.address
    )
    assert local[0] == ray[0] == 0, (local, ray)
    assert local[1] == ray[1]  # the tables, in the same order
    assert len(kept(tmp_path / "local")) == 2 * 2 * 2  # models × data × histories
    assert kept(tmp_path / "ray") == kept(tmp_path / "local")
    again = called(*arguments, "-o", tmp_path / "ray", "--engine", "ray", "--address", "nowhere:1")
    assert again[:2] == ray[:2]  # all is known: no cluster is looked for
    assert again[2].count("existing result") == 8


@pytest.mark.nightly
def test_verbose_shows_what_the_workers_do(cluster, tmp_path, benchmark_file):
    arguments = ["baseline:chance", "--data", benchmark_file, "--task", "pairwise-sts", "--verbose"]
    on_ray = ["--engine", "ray", "--address", cluster.address]
    said = {}
    for folder, more in {"local": [], "ray": on_ray}.items():
        code, _, lines = called(*arguments, "-o", tmp_path / folder, *more)
        assert code == 0, lines
        said[folder] = re.findall(r"DEBUG giccs\.tasks\.pairwise: .*", lines)
    assert said["ray"] == said["local"] != []


@pytest.mark.nightly
def test_a_node_is_killed_while_it_works_and_its_task_is_done_elsewhere(
    cluster, tmp_path, benchmark_file, monkeypatch
):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    killed = []

    def kill():
        node_id = pipe.read_text()  # waits until a task says that it runs, and where
        (node,) = [node for node in cluster.worker_nodes if node.node_id == node_id]
        cluster.remove_node(node, allow_graceful=False)
        killed.append(node_id)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    arguments = ["baseline:chance", "baseline:char-ngram", "--data", benchmark_file, "--task", "pairwise-sts",
                 "--json", "-o"]  # fmt: skip
    with monkeypatch.context() as patched:
        task = hindered.OnceStuck(folder=str(tmp_path))
        patched.setattr(pairwise, "TASK", TaskKind(lambda options: [task]))
        code, out, said = called(
            *arguments, tmp_path / "ray", "--engine", "ray", "--address", cluster.address
        )
    killer.join()
    cluster.add_node(**OWN)
    assert (code, len(killed)) == (0, 1), said
    models = [
        result["model"] for result in json.loads(out)["results"]
    ]  # and what Ray says is elsewhere
    assert models == ["baseline:chance", "baseline:char-ngram"]
    assert called(*arguments, tmp_path / "local")[0] == 0
    assert kept(tmp_path / "ray") == kept(tmp_path / "local")


def test_what_kills_its_workers_or_fails_is_told_and_the_rest_is_done(
    cluster, data, tmp_path, monkeypatch
):
    store = Store(tmp_path / "r")
    model, other = open_model("baseline:chance"), open_model("baseline:char-ngram")
    asks = [
        EvaluationJob(model, hindered.Deadly(folder=str(tmp_path)), data),
        EvaluationJob(model, PairwiseSTS("with"), data),  # after it, with the same worker
        EvaluationJob(other, hindered.Faulty(), data),
        EvaluationJob(other, PairwiseSTS(), data),
        EvaluationJob(other, hindered.Threads(), data),
    ]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # more than a node has CPUs: it counts all the same
    with pytest.raises(EngineError) as caught:
        list(run_on_ray(asks, store, address=cluster.address))
    documents = [document for _, document in kept(tmp_path / "r").values()]
    assert {(document["model"], document["signature"]["history"]) for document in documents} == {
        ("baseline:chance", "with"),
        ("baseline:char-ngram", "without"),
    }
    deaths = (tmp_path / "deaths").read_text().split()
    assert len(set(deaths)) == len(deaths) == MAX_RESTARTS + 1
    first, threads, second = sorted(str(caught.value).splitlines())
    assert re.match(r"baseline:chance: pairwise-sts: its worker was lost 4 times \(", first)
    assert second == "baseline:char-ngram: pairwise-sts: ZeroDivisionError: a mistake"
    assert threads.endswith("ZeroDivisionError: 2 threads")


@pytest.mark.nightly
def test_models_that_cannot_be_had_are_told_as_locally(cluster, tmp_path, benchmark_file, vectors):
    empty = tmp_path / "empty"
    empty.mkdir()
    broken = f"static:{vectors}"  # seen when it is loaded, so by the worker
    vectors.write_text("ich 0.1 0.2\nam 0.1\n", "utf-8")
    on_ray = ["--engine", "ray", "--address", cluster.address]
    said = {}
    for model in (empty, "baseline:nothing", broken):
        arguments = [model, "--data", benchmark_file, "-o", tmp_path / "r", "--quiet"]
        code, out, said[model] = called(*arguments)
        assert (code, out) == (2, "")
        assert said[model].startswith(str(model).removeprefix("static:"))
        if model != broken:
            assert called(*arguments, *on_ray) == (code, out, said[model])
    arguments = [
        broken,
        "baseline:chance",
        "--data",
        benchmark_file,
        "-o",
        tmp_path / "r",
        "--quiet",
    ]
    code, out, problems = called(*arguments, "--task", "pairwise-sts", *on_ray)
    assert (code, problems) == (2, said[broken])
    assert "chance" in out  # what could be done is shown and kept
    assert len(kept(tmp_path / "r")) == 1


@pytest.mark.nightly
def test_a_worker_that_cannot_start_says_why(cluster, data, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "Worker", hindered.NoWorker)
    model = open_model("baseline:chance")
    asks = [EvaluationJob(model, PairwiseSTS(history), data) for history in ("with", "without")]
    with pytest.raises(EngineError) as caught:
        list(run_on_ray(asks, Store(tmp_path / "r"), address=cluster.address))
    reason = "its worker cannot start: ModuleNotFoundError: No module named 'giccs'"
    assert str(caught.value).splitlines() == 2 * [f"baseline:chance: pairwise-sts: {reason}"]


@pytest.mark.nightly
def test_a_worker_with_other_weights_is_not_believed(cluster, data, tmp_path):
    seed_7 = open_model("baseline:chance", ModelOptions(seed=7))
    ask = EvaluationJob(
        seed_7, PairwiseSTS(), data, ModelOptions(seed=8)
    )  # as the worker will open it
    with pytest.raises(ValueError, match="differs on the worker; different keys: model_seed"):
        list(run_on_ray([ask], Store(tmp_path / "r"), address=cluster.address))
    assert kept(tmp_path / "r") == {}


def marked(mark):
    """Return the commands of processes that have a mark in their environment."""
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                result.append((process / "cmdline").read_bytes())
    return [command for command in result if command]  # without: ended, and not yet buried


@pytest.mark.nightly
def test_ctrl_c_leaves_what_is_done(tmp_path, benchmark_file):
    """Without an address, so on a cluster of its own; the model that is asked second never answers."""
    pytest.importorskip("ray", reason="ray is not installed")
    mark = f"GICCS_MARK={tmp_path}"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = f"""
import threading
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from giccs.cli.evaluation import evaluate
import giccs.tasks.pairwise as pairwise
from giccs.tasks import TaskKind
class SecondStuck(pairwise.PairwiseSTS):
    def measure(self, model, data, progress):
        try:
            Path({str(tmp_path)!r}, "begun").touch(exist_ok=False)
        except FileExistsError:
            Path({str(pipe)!r}).write_text("stuck")
            threading.Event().wait()
        return pairwise.PairwiseSTS.measure(self, model, data, progress)
pairwise.TASK = TaskKind(lambda options: [SecondStuck()])
evaluate(prog_name="giccs-eval")
"""
    running = subprocess.Popen(
        [sys.executable, "-c", program, "baseline:chance", "baseline:char-ngram", "--task", "pairwise-sts",
         "--data", benchmark_file, "-o", tmp_path / "r", "--engine", "ray"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "GICCS_MARK": str(tmp_path)},
    )  # fmt: skip
    with running:
        for line in running.stderr:
            if done := re.match(r"(baseline:[a-z-]+): pairwise-sts: \d", line):
                break
        assert pipe.read_text() == "stuck"
        before = b" ".join(marked(mark))
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        out, _ = running.communicate(timeout=300)
    assert running.returncode == 130
    assert done[1] in out
    documents = [document for _, document in kept(tmp_path / "r").values()]
    assert [document["model"] for document in documents] == [done[1]]
    if Path("/proc/self/environ").exists():
        assert b"raylet" in before
        assert b"gcs_server" in before
        end = time.monotonic() + 120
        while left := marked(mark):
            assert time.monotonic() < end, left
            time.sleep(0.05)


def test_what_the_call_says_wrong(monkeypatch, tmp_path, benchmark_file):
    arguments = ["baseline:chance", "--data", benchmark_file, "-o", tmp_path / "r"]
    code, _, said = called(*arguments, "--address", "auto")
    assert (code, "--address requires --engine ray" in said) == (2, True)
    pytest.importorskip("ray", reason="ray is not installed")
    with socket.create_server(("127.0.0.1", 0)) as once:
        nobody = f"127.0.0.1:{once.getsockname()[1]}"
    other = ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    for address, reason in {
        f"127.0.0.1:{other.server_port}": "no response of a Ray cluster (another service responds)",
        "nonsense": "invalid address; expected auto or HOST:PORT",
        "ray://127.0.0.1:10001": "invalid address; expected auto or HOST:PORT",
        nobody: "no response of a Ray cluster (Connection refused)",
    }.items():
        code, _, said = called(*arguments, "--engine", "ray", "--address", address)
        assert (code, said.splitlines()[-1]) == (2, f"--address {address}: {reason}")
    other.shutdown()
    code, _, said = called(*arguments, "--engine", "ray", "--device", "cuda:1")
    assert (code, said) == (
        2,
        "--engine ray: cuda:1 is not supported, because Ray assigns the GPUs; use --device cuda\n",
    )
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, said = called(*arguments, "--engine", "ray")
    assert (code, said) == (
        2, "--engine ray: needs ray; install it with: pip install 'giccs[ray]'\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "Failed to connect to Ray cluster at 127.0.0.1:6379",  # all that Ray 2.60 says
            "Failed to connect to Ray cluster at 127.0.0.1:6379; if it requires a token, set "
            "RAY_AUTH_MODE=token",
        ),
        ("Could not find any\n running Ray instance.", "Could not find any running Ray instance."),
    ],
)
def test_a_cluster_that_wants_a_token_is_guessed(message, told):
    assert _connection_message(ConnectionError(message)) == told


def test_what_comes_to_the_same_is_asked_once(data):
    first, second = open_model("baseline:chance"), open_model("baseline:char-ngram")
    pairs = [(first, PairwiseSTS()), (second, PairwiseSTS()), (first, PairwiseSTS("with")),
             (second, PairwiseSTS())]  # fmt: skip
    asks = distinct_jobs(EvaluationJob(model, task, data) for model, task in pairs)
    assert [(ask.model.name, ask.task.history) for ask in asks] == [
        ("baseline:chance", "without"),
        ("baseline:chance", "with"),
        ("baseline:char-ngram", "without"),
    ]


def test_workers_take_as_many_threads_as_this_process(monkeypatch, static_encoder):
    torch = pytest.importorskip("torch")
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    cpus = str(environment()["cpus"])
    chance, encoder = open_model("baseline:chance"), open_model(str(static_encoder))
    one, other = ([(0, EvaluationJob(model, PairwiseSTS(), None))] for model in (chance, encoder))
    assert _thread_variables(one) == {"OMP_NUM_THREADS": cpus, "OPENBLAS_NUM_THREADS": cpus}
    own = str(torch.get_num_threads())
    assert _thread_variables(other) == {"OMP_NUM_THREADS": own, "OPENBLAS_NUM_THREADS": cpus}
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert _thread_variables(other) == {"OMP_NUM_THREADS": "2"}


def test_a_gpu_is_claimed_where_the_model_takes_one(static_encoder):
    """The stand-in is for a cluster with GPUs, as most machines that run the tests have none."""
    gpus = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0})
    none = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0})
    encoder = open_model(str(static_encoder))

    def ask(device, model=encoder):
        return EvaluationJob(model, PairwiseSTS(), None, ModelOptions(device=device))

    assert [_n_gpus(gpus, ask(device)) for device in ("auto", "cuda", "cpu")] == [1, 1, 0]
    assert _n_gpus(gpus, ask("auto", open_model("baseline:chance"))) == 0
    assert [_n_gpus(none, ask(device)) for device in ("auto", "cpu")] == [0, 0]
    with pytest.raises(ValueError, match="--device cuda requested, but the cluster has no GPU"):
        _n_gpus(none, ask("cuda"))


def test_a_model_for_which_memory_does_not_suffice_is_named_and_what_was_kept_stays(data, tmp_path):
    """The limit of the address space is real; a stand-in only asks for more than there is."""
    program = """
import resource, sys
from dataclasses import dataclass
from giccs.benchmark import read_benchmark
from giccs.evaluation.engines import EngineError
from giccs.evaluation.engines.local import EvaluationJob
from giccs.evaluation.engines.local import run_locally
from giccs.models import open_model
from giccs.measures.results import Store
from giccs.tasks.pairwise import PairwiseSTS
@dataclass(frozen=True, slots=True)
class Large(PairwiseSTS):
    def measure(self, model, data, progress):
        import numpy as np
        resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
        return np.ones(2**34)
model, data = open_model("baseline:chance"), read_benchmark(sys.argv[1])
try:
    jobs = [EvaluationJob(model, PairwiseSTS(), data), EvaluationJob(model, Large("with"), data)]
    list(run_locally(jobs, Store(sys.argv[2])))
except EngineError as error:
    print(error)
"""
    command = [sys.executable, "-c", program, data.name, str(tmp_path / "r")]
    message = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True
    ).stdout
    assert message.startswith("baseline:chance: pairwise-sts, with history: not enough memory (")
    assert len(kept(tmp_path / "r")) == 1


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."), True),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ImportError("No module named 'torch'"), False),
    ],
)
def test_other_mistakes_are_not_taken_for_a_lack_of_memory(error, lacks):
    assert is_memory_error(error) is lacks
