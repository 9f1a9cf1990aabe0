"""Simulated workers, who use the pages of the worker website as people do."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlsplit

import numpy as np

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_text
from bws.files import read_scores
from bws.model_annotators import SIMULATED_COMMENT
from mturk import answers
from mturk.kinds import Behaviour, ExpectedTuple, Truth, get_kind
from mturk.kinds.registry import kind_names
from mturk.study.simulated_browser import Page, WebClient

log = logging.getLogger(__name__)

ASSIGNMENT_LINK = re.compile(r'href="(/work/assignment/[^"]+)"')
MAX_WORK_LOOKUPS = 3
"""Maximum number of consecutive searches for work without an accepted HIT."""
CONFLICT = 409
"""Status of a page that says that the work of the list is no longer available."""


@dataclass
class SimulationLog:
    """Counts and response times of simulated workers; updated while they work."""

    counts: Counter[str] = field(default_factory=Counter)
    """submitted, returned, abandoned, taken (by others before the worker accepted them), refused, repeated,
    foreign (HITs not created by this package)."""
    by_worker: Counter[str] = field(default_factory=Counter)
    """Submissions per worker."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Kind of page -> response times in seconds."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Refused requests by kind of page and status."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, event: str, worker: str = "", reason: str = "", times: int = 1) -> None:
        """Increase the count of an event."""
        with self.lock:
            self.counts[event] += times
            if event == "submitted":
                self.by_worker[worker] += 1
            if reason:
                self.refusals[reason] += 1

    def record_response(self, path: str, seconds: float) -> None:
        """Record the response time of a page."""
        with self.lock:
            self.seconds.setdefault(page_kind(path), []).append(seconds)

    def quantiles(self) -> dict[str, dict[str, float]]:
        """Return the number of responses and p50, p95, p99 in seconds, per kind of page and for all."""
        kinds = {**self.seconds, "all": [s for times in self.seconds.values() for s in times]}
        return {
            kind: {"n": len(times)}
            | {f"p{q}": float(np.percentile(times, q)) for q in (50, 95, 99)}
            for kind, times in kinds.items()
            if times
        }


def page_kind(path: str) -> str:
    """Return the kind of a page.

    >>> [page_kind(p) for p in ("/work/", "/work/assignment/3A", "/submit/t/mturk/externalSubmit")]
    ['list', 'assignment', 'submit']
    """
    parts = path.strip("/").split("/")
    if parts == ["work"]:
        return "list"
    if parts[0] == "work":
        return {"enter": "enter", "start": "enter"}.get(parts[1], parts[1])
    return {"join": "enter"}.get(parts[0], parts[0])


def simulated_worker_ids(count: int) -> list[str]:
    """Return ids of simulated workers in the form of worker ids.

    >>> simulated_worker_ids(2)
    ['ASIMULATED1', 'ASIMULATED2']
    """
    return [f"ASIMULATED{number}" for number in range(1, count + 1)]


def read_truth(path: str | os.PathLike[str]) -> Truth:
    """Read true scores from a scores file, or from dialogues whose candidates have intended levels.

    Levels 1 to 5 become -1, -0.5, 0, 0.5 and 1. A table with the columns sentence1, sentence2 and
    condition has the true similarities in label, or high and low in intended; other kinds of HIT may
    define their own tables. Raises InputError with all problems.
    """
    name = display_name(path).removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        return _read_intended_levels(path, display_name(path))
    if name.endswith((".csv", ".tsv")):
        for kind in map(get_kind, kind_names()):
            if (truth := kind.read_truth(path)) is not None:
                return truth
    scores = read_scores(path)
    return dict(zip(scores.item_keys, scores.score.tolist(), strict=True))


def _read_intended_levels(path: str | os.PathLike[str], name: str) -> dict[tuple[str, str], float]:
    from giccs.benchmark.assemble import read_dialogues

    levels = {
        (normal_id(dialogue.dialogue_id), normal_id(candidate.utterance_id)): candidate.intended
        for dialogue in read_dialogues(path)
        for candidate in dialogue.candidates
    }
    items_without_level = [
        f"{group}, {item}" for (group, item), level in levels.items() if level is None
    ]
    if items_without_level or not levels:
        names = "; ".join(items_without_level[:5])
        message = f"{len(items_without_level)} candidates without an intended level ({names})"
        raise InputError(Problem(name, None, message))
    return {key: (level - 3) / 2 for key, level in levels.items() if level is not None}


def read_links(path: str | os.PathLike[str]) -> list[str]:
    """Read personal links: the last address per line, with words separated by spaces or commas."""
    links, problems = [], []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = [word for word in line.replace(",", " ").split() if "://" in word]
        if words:
            links.append(words[-1])
        elif number > 1 and line.strip():  # the first line may be a header
            problems.append(
                Problem(display_name(path), number, "missing link; expected an address")
            )
    if not links and not problems:
        problems.append(
            Problem(display_name(path), None, "contains no links; expected one per line")
        )
    if problems:
        raise InputError(problems)
    return links


def simulate_workers(
    site: str,
    workers: Sequence[str],
    truth: Truth,
    behaviour: Behaviour,
    *,
    on_submission: Callable[[SimulationLog], object] = lambda _: None,
) -> SimulationLog:
    """Run simulated workers concurrently until no work is left for them.

    site: address of the site without a path. workers: ids for open entry, or personal links.
    on_submission: called after each submission, by one thread at a time. Raises InputError if an item has no
    true score or entry is refused, and UnreachableError if the site is unreachable; the first error stops
    all.
    """
    log.debug("%d workers enter %s", len(workers), site)
    results = SimulationLog()
    stop_event = threading.Event()
    errors: list[BaseException] = []

    def work(name: str, entry: str) -> None:
        browser = WebClient(site, on_response=results.record_response, stop_event=stop_event)
        try:
            _Worker(name, entry, browser, truth, behaviour, results, on_submission).work()
        except BaseException as error:
            errors.append(error)
            stop_event.set()
        finally:
            results.count("repeated", times=browser.n_retries)
            browser.close()

    with ThreadPoolExecutor(max(1, len(workers))) as pool:
        try:
            list(pool.map(work, simulated_worker_ids(len(workers)), workers))
        finally:
            stop_event.set()
    if errors:
        raise errors[0]
    return results


@dataclass
class _Worker:
    name: str
    entry: str
    browser: WebClient
    truth: Truth
    behaviour: Behaviour
    results: SimulationLog
    on_submission: Callable[[SimulationLog], object]
    foreign_groups: set[str] = field(default_factory=set)
    """Groups of HITs not created by this package."""
    failed_paths: set[str] = field(default_factory=set)
    """Assignments whose question failed to load; after a second failure the worker leaves."""
    group: str = ""
    """Group of the last accepted HIT."""

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.behaviour.seed}/{self.name}")  # noqa: S311 - reproducible, not a secret

    def work(self) -> None:
        page: Page | None = self._enter()
        lookups = 0
        while page is not None and lookups < MAX_WORK_LOOKUPS and not self.browser.stopped.is_set():
            if page.frame and page.path.startswith("/work/assignment/"):
                lookups = 0
                page = self._do_assignment(page)
            elif page.path == "/work/finished":
                page = None
            else:
                lookups += 1
                page = self._find_work(page)

    def _enter(self) -> Page:
        if "://" in self.entry:
            page = self.browser.get(self.entry)
        else:
            page = self._send(self.browser.get("/work/"), "/work/enter", worker=self.entry)
        if page.form("/work/start"):
            answers_given = {"country": self.behaviour.country, "consent": "yes"}
            page = self._send(page, "/work/start", **answers_given)
        if page.status != 200 or not page.form("/work/leave"):
            message = f"{self.name} cannot enter (status {page.status})"
            message += "; expected --links if the site requires keys"
            raise InputError(Problem(self.browser.site, None, message))
        return page

    def _send(self, page: Page, action: str, **fields: str) -> Page:
        """Submit the page's form with this action; return the page itself without such a form."""
        form = page.form(action)
        return self.browser.post(action, form.fields | fields) if form else page

    def _find_work(self, page: Page) -> Page | None:
        """Continue an accepted HIT, or accept one from the list; None without available HITs."""
        if page.path != "/work/" or page.status != 200:
            page = self.browser.get("/work/")
        if match := ASSIGNMENT_LINK.search(page.text):
            return self.browser.get(match[1])
        offers = [
            f
            for f in page.forms("/work/accept")
            if f.fields.get("group") not in self.foreign_groups
        ]
        if not offers:
            return None
        offer = self.random.choice(offers).fields
        self.group = offer.get("group", "")
        accepted_page = self.browser.post("/work/accept", offer)
        if accepted_page.status == CONFLICT:
            self.results.count("taken")
        elif accepted_page.status != 200:
            self._count_refusal(accepted_page)
        return accepted_page

    def _do_assignment(self, page: Page) -> Page | None:
        """Complete the assignment of the page, and return the next page."""
        behaviour = self.behaviour
        question = self.browser.get(page.frame or "")
        if question.status != 200:
            self._count_refusal(question)
            first_failure = page.path not in self.failed_paths
            self.failed_paths.add(page.path)
            return self.browser.get("/work/") if first_failure else None
        tuples = answers.expected_tuples_in_page(question.text)
        chance = self.random.random()
        if not tuples:
            self.results.count("foreign")
            self.foreign_groups.add(self.group)
            return self._return_hit(page)
        if chance < behaviour.abandons:
            self.results.count("abandoned")
            return None
        if chance < behaviour.abandons + behaviour.returns:
            self.results.count("returned")
            return self._return_hit(page)
        pace = behaviour.pace and self.random.expovariate(1 / behaviour.pace)
        if self.browser.stopped.wait(pace):
            return None
        return self._submit(page, tuples, pace)

    def _return_hit(self, page: Page) -> Page:
        return self._send(page, "/work/return")

    def _submit(self, page: Page, tuples: Sequence[ExpectedTuple], pace: float) -> Page | None:
        query = parse_qs(urlsplit(page.frame or "").query)
        fields = [("assignmentId", query["assignmentId"][0])]
        number = int(query.get("assignmentNumber", ["0"])[0])
        tuples = [replace(expected, assignment_number=number) for expected in tuples]
        fields += simulate_answer(tuples, self.truth, self.behaviour, self.name, pace)
        response = self.browser.post(f"{query['turkSubmitTo'][0]}/mturk/externalSubmit", fields)
        if response.status != 200:
            self._count_refusal(response)
            return self.browser.get("/work/")
        self.results.count("submitted", self.name)
        with self.results.lock:
            self.on_submission(self.results)
        return self._send(page, "/work/continue", automatic="yes")

    def _count_refusal(self, page: Page) -> None:
        self.results.count("refused", reason=f"{page_kind(page.path)} {page.status}")


def simulate_answer(
    expected_tuples: Sequence[ExpectedTuple],
    truth: Truth,
    behaviour: Behaviour,
    worker: str,
    pace: float,
) -> list[tuple[str, str]]:
    """Return the fields of a form; a worker always gives the same answer to a tuple.

    >>> tuples = [ExpectedTuple("t1", "d1", ("a", "b"))]
    >>> truth = {("d1", "a"): 1.0, ("d1", "b"): -1.0}
    >>> dict(simulate_answer(tuples, truth, Behaviour(noise=0), "ASIMULATED1", 0.0))["best-t1"]
    'a'
    """
    fields = [(answers.COMMENT, SIMULATED_COMMENT)]
    for expected in expected_tuples:
        fields += get_kind(expected.kind).simulate(expected, truth, behaviour, worker)
        fields.append(
            (answers.seconds_field(expected.tuple_id), f"{pace / len(expected_tuples):.1f}")
        )
    return fields
