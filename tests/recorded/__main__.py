"""Record what all worked examples print and write, and compare it after a change of structure.

    python -m tests.recorded record [PAGE ...]     # twice: what differs between two runs is not compared
    python -m tests.recorded compare [PAGE ...]

A page is README.md or a page below docs. The folder of this file keeps, for each page, the digests of what
its steps print and of the files that they leave, and short texts. .cache/recorded keeps all texts of the last
recording and comparison on this machine, so that differences can be read:
``diff -r .cache/recorded/record .cache/recorded/compare``.
"""

from __future__ import annotations

import argparse
import doctest
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from robustness.documents import PAGES, ROOT, run, steps, stop_servers
from tests.fork_server import ForkServer
from tests.test_docs import environment, with_free_ports

FOLDER, TEXTS = Path(__file__).parent, ROOT / ".cache" / "recorded"
SHORT = 600
"""Most characters of an output that is kept as text."""
PROSE = {".csv", ".html", ".json", ".jsonl", ".md", ".svg", ".tex", ".toml", ".tsv", ".txt", ".xml"}
SKIPPED = {".db", ".pid", ".lock", ".log", ".safetensors", ".npy", ".npz"}
PASSING = (
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|\+00:00)?", "DATE"),
    (r"\b\d+(?:\.\d+)? ?(?:s|ms|µs|min|seconds|CPU s)\b", "TIME"),
    (r"\b\d+(?:\.\d+)? ?(?:it|rows|items|texts|pairs|questions|tuples|prompts)/s", "RATE"),
    (r"(?:127\.0\.0\.1|localhost):\d+", "HOST"),
    (r"\b(?:port|pid) \d+", "PORT"),
    (r'"(?:\w+_)?seconds": [\d.e-]+', '"seconds": TIME'),
    (r'^ *"sha256": "[0-9a-f]{64}"', "DIGEST"),
)
"""Patterns of what differs between runs."""


def plain(text, folder):
    """Return a text without what differs between runs by its nature."""
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    for passing, name in PASSING:
        text = re.sub(passing, name, text, flags=re.M)
    return text


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


class Session(doctest.DocTestRunner):
    """A runner that keeps what examples print."""

    def __init__(self):
        super().__init__(verbose=False)
        self.printed = []

    def report_success(self, out, test, example, got):
        self.printed.append(got)

    report_failure = report_success

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.printed.append(f"{exc_info[0].__name__}: {exc_info[1]}\n")


def outputs(page, folder, programs):
    """Yield the text of each step of a page, and what it prints."""
    names, work = {}, folder / "work"
    work.mkdir()
    os.chdir(work)
    found = [step for step in steps((ROOT / page).read_text("utf-8")) if not step.not_run]
    originals = [step.text for step in found]
    for text, step in zip(originals, with_free_ports(found), strict=True):
        if step.is_python:
            session = Session()
            test = doctest.DocTestParser().get_doctest(step.text, names, page, page, 0)
            session.run(test, out=lambda _: None, clear_globs=False)
            names = test.globs
            yield text, "".join(session.printed)
        else:
            code, output, after = run(step.text, Path.cwd(), environment([programs]))
            os.chdir(after)
            yield text, output + (f"exit code {code}\n" if code else "")


def files(folder):
    """Yield the path and content of each file that the steps left."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "__")) for part in parts)
        if path.is_file() and not hidden and path.suffix not in SKIPPED:
            content = path.read_bytes()
            if path.suffix in PROSE:
                content = plain(content.decode(errors="replace"), folder.parent).encode()
            yield "/".join(parts), content


def taken(page, commands, texts):
    """Run a page; return its record, and write all texts to a folder."""
    with tempfile.TemporaryDirectory(prefix="recorded-") as name:
        folder = Path(name)
        programs = commands.scripts(folder / ".programs")
        record = {"steps": [], "files": {}}
        place = texts / page.replace("/", "__")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            for number, (text, output) in enumerate(outputs(page, folder, programs)):
                output = plain(output, folder)
                step = {"step": text.strip(), "digest": digest(output.encode())}
                record["steps"].append(step | ({"prints": output} if len(output) <= SHORT else {}))
                (place / f"{number:03}.txt").write_text(f"{text}\n{output}", "utf-8")
            for file, content in files(folder / "work"):
                record["files"][file] = digest(content)
                kept = place / "files" / file
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
        finally:
            stop_servers(folder)
            os.chdir(ROOT)
    return record


def differences(old, new):
    """Yield a line for each step and file that differs from the record."""
    for number, (before, after) in enumerate(zip(old["steps"], new["steps"], strict=False)):
        if before["step"] != after["step"]:
            yield f"step {number} is now: {after['step']}"
        elif before["digest"] not in ("varies", after["digest"]):
            yield f"step {number} prints other text: {after['step'].splitlines()[0]}"
    if len(old["steps"]) != len(new["steps"]):
        yield f"{len(old['steps'])} steps before, {len(new['steps'])} now"
    for file in sorted(old["files"].keys() | new["files"].keys()):
        before, after = old["files"].get(file), new["files"].get(file)
        if before != after and before != "varies":
            yield f"{file}: {'new' if not before else 'other content' if after else 'missing'}"


def settled(old, new):
    """Return the new record, with "varies" for what differs from the record of another run."""
    steps_before = {step["step"]: step["digest"] for step in old["steps"]}
    for step in new["steps"]:
        if steps_before.get(step["step"], step["digest"]) != step["digest"]:
            step["digest"] = "varies"
            step.pop("prints", None)
    for file, content in new["files"].items():
        if old["files"].get(file, content) != content:
            new["files"][file] = "varies"
    for file in old["files"].keys() - new["files"].keys():
        new["files"][file] = "varies"
    return new


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    asked = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    changed = False
    with tempfile.TemporaryDirectory(prefix="recorded-") as name:
        commands = ForkServer(Path(name))
        for page in asked.pages or PAGES:
            if not any(not step.not_run for step in steps((ROOT / page).read_text("utf-8"))):
                continue
            path = FOLDER / f"{page.replace('/', '__')}.json"
            old = json.loads(path.read_text("utf-8")) if path.exists() else None
            new = taken(page, commands, TEXTS / asked.what)
            if asked.what == "record":
                new = settled(old, new) if old else new
                path.write_text(json.dumps(new, ensure_ascii=False, indent=1) + "\n", "utf-8")
                print(page, len(new["steps"]), "steps", len(new["files"]), "files", flush=True)
                continue
            found = [*differences(old, new)] if old else ["not recorded"]
            changed |= bool(found)
            print(
                *(f"{page}: {line}" for line in found), sep="\n", end="\n" * bool(found), flush=True
            )
        commands.close()
    sys.exit(changed)


if __name__ == "__main__":
    main()
