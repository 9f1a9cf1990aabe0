"""Faults at any step of publication: in the end, each planned HIT exists exactly once."""

import random
from collections import Counter
from functools import cache
from types import SimpleNamespace

import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

from mturk.study.client import ServiceError, connect, resolve
from mturk.study.ledger import Ledger
from mturk.study.publish import adopt_hits, available_balance, create_hits, unpublished_hits
from mturk.study.settings import Settings
from tests.mturk.study.killable_process import first_of_each
from tests.nightly import first_in_ci

HITS = 2
TIMEOUT_SECONDS = 20.0
IMPATIENT = 3.0
"""Timeout in seconds: short for a hanging service, but longer than a busy machine stalls."""


def timeout_for(fault):
    return IMPATIENT if "hang" in fault else TIMEOUT_SECONDS


class Killed:
    """Runs `giccs annotate publish` for one study per seed in processes that may be killed."""

    def __init__(self, process, running, files, folder):
        self.process, self.running, self.files, self.folder = process, running, files, folder

    def publish(self, seed, kill=0):
        config = self.folder / f"{seed}.toml"
        config.write_text(f"seed = {seed}\n")
        arguments = [
            "publish", *self.files.arguments, "--config", config, "--endpoint", self.running.url,
            "--ledger", self.folder / f"{seed}.db",
        ]  # fmt: skip
        return self.process.run(*arguments, endpoint=self.running.url, kill=kill)

    def meant(self, seed):
        return [plan.annotation for plan in self.files.plans(Settings(seed=seed))]


@pytest.fixture
def killable(killable_process, running, files, tmp_path):
    return Killed(killable_process, running, files, tmp_path)


@pytest.mark.parametrize("is_all", first_in_ci([False, True]))
def test_killed_at_any_step_creates_each_hit_once(killable, is_all):
    assert killable.publish(1000)["status"] == 0  # So that each list of HITs has two pages.
    whole = killable.publish(0)
    assert whole["status"] == 0
    steps = whole["steps"]
    assert {"before commit", "after commit"} < set(steps)
    assert steps.count("before CreateHITWithHITType") == HITS
    assert steps.count("after commit") >= 3 + HITS  # the study, the type, all sent, each created
    for kill in range(1, len(steps) + 1) if is_all else first_of_each(steps):
        dead = killable.publish(kill, kill)
        assert (dead["status"], dead["steps"]) == (-9, steps[:kill])
        assert killable.publish(kill)["status"] == 0, steps[:kill]
        result = Counter(killable.running.annotations())
        assert [result[name] for name in killable.meant(kill)] == [1] * HITS, steps[:kill]
        with Ledger.open(killable.folder / f"{kill}.db") as book:
            assert unpublished_hits(book) == []


@pytest.mark.parametrize("progress", first_in_ci([6, 2]))
def test_repeatedly_killed_publication_completes(killable, progress):
    """Each run progresses further."""
    runs = 0
    for kill in range(progress, 200, progress):
        runs += 1
        if killable.publish(7, kill)["status"] == 0:
            break
    assert runs > 10 / progress
    result = Counter(killable.running.annotations())
    assert [result[name] for name in killable.meant(7)] == [1] * HITS


class Publisher:
    """A publisher in this process with a faulty service."""

    def __init__(self, running, files, folder):
        self.running, self.files, self.folder = running, files, folder
        self.connect = cache(
            lambda timeout, attempts: connect(
                resolve(running.url), timeout=timeout, max_attempts=attempts
            )
        )

    def publish(self, seed, attempts=1, timeout=TIMEOUT_SECONDS):
        settings = Settings(seed=seed)
        client = self.connect(timeout, attempts)
        with Ledger.open(self.folder / f"{seed}.db", create=True) as book:
            book.start_study(self.running.url, settings, self.files.plans(settings), 0.0)
            adopt_hits(client, book, clock=self.running.clock.now)
            available_balance(client)
            create_hits(client, book, clock=self.running.clock.now)

    def hits(self, seed):
        result = Counter(self.running.annotations())
        return [result[plan.annotation] for plan in self.files.plans(Settings(seed=seed))]


@pytest.fixture
def publisher(running, files, tmp_path, monkeypatch):
    # botocore's waiting between attempts is not what is tested
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    return Publisher(running, files, tmp_path)


FAULTS = (
    "throttled", "error", "error after", "drop before", "drop after", "hang before", "hang after",
)  # fmt: skip


STEPS = pytest.mark.parametrize("steps", first_in_ci([(4,), range(1, 4 + HITS)]), ids=len)
"""Calls that fail: the one for the first HIT, or each: the list, the balance, the type, and the HITs."""


@STEPS
@pytest.mark.parametrize("fault", FAULTS)
def test_resumed_publication_after_failed_call_creates_each_hit_once(publisher, fault, steps):
    faults = publisher.running.faults
    publisher.publish(0)
    assert len(faults.calls) == 3 + HITS
    assert faults.calls[3] == "CreateHITWithHITType"
    for step in steps:
        first = len(faults.calls)
        faults.choose = lambda operation, number: fault if number == first + step else None  # noqa: B023
        with pytest.raises(ServiceError):
            publisher.publish(step, timeout=timeout_for(fault))
        assert len(faults.calls) == first + step
        faults.choose = lambda operation, number: None
        publisher.connect.cache_clear()  # a client that was throttled is slow for a while
        publisher.publish(step)
        assert publisher.hits(step) == [1] * HITS


@STEPS
@pytest.mark.parametrize("fault", ["error", "error after", "hang after"])
def test_failed_call_is_retried_without_duplicate(publisher, fault, steps):
    faults = publisher.running.faults
    for step in steps:
        first = len(faults.calls)
        faults.choose = lambda operation, number: fault if number == first + step else None  # noqa: B023
        publisher.publish(step, attempts=3, timeout=timeout_for(fault))
        assert len(faults.calls) >= first + 4 + HITS
        assert publisher.hits(step) == [1] * HITS


def test_throttled_calls_are_retried(publisher):
    throttled = {2, 5}
    publisher.running.faults.choose = lambda operation, number: (
        "throttled" if number in throttled else None
    )
    publisher.publish(1, attempts=5)
    assert publisher.hits(1) == [1] * HITS


def test_publication_completes_with_frequent_failures(publisher):
    chance = random.Random(0)
    happens = ("error", "error after", "drop before", "drop after", None, None)
    publisher.running.faults.choose = lambda operation, number: chance.choice(happens)
    failures = 0
    while failures < 100:
        try:
            publisher.publish(1)
            break
        except ServiceError:
            failures += 1
            assert max(publisher.hits(1)) <= 1
    assert 3 < failures < 100
    assert publisher.hits(1) == [1] * HITS
