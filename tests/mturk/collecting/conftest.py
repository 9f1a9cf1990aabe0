"""A published study at a real service, and workers that answer it."""

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

SPEC = importlib.util.spec_from_file_location(
    "publishing_fixtures", Path(__file__).parents[1] / "publishing" / "conftest.py"
)
PUBLISHING = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PUBLISHING)
running, files = PUBLISHING.running, PUBLISHING.files
no_keys_of_this_machine = PUBLISHING.no_keys_of_this_machine


class StudyAtService:
    """Two HITs of two tuples each; its ledger is `path`."""

    def __init__(self, running, files, folder, name="ledger", **settings):
        from mturk.client import connect, resolve
        from mturk.endpoint.work import Work
        from mturk.ledger import Ledger
        from mturk.publish import send
        from mturk.settings import Settings

        self.running, self.files, self.folder = running, files, folder
        self.settings = Settings(**{"approval_rate_above": -1, "countries": ()} | settings)
        self.path = str(folder / f"{name}.db")
        self.work = Work(running.database, running.clock)
        self.client = connect(resolve(running.url), timeout=20.0, attempts=3)
        self.book = Ledger.open(self.path, create=True)
        self.book.begin(running.url, self.settings, files.plans(self.settings), self.now())
        send(self.client, self.book, clock=self.now)

    def now(self):
        return self.running.clock.now()

    def hit_ids(self):
        return [hit.hit_id for hit in self.book.hits()]

    def fields(self, hit_id, best=0, worst=2, comment="", seconds="7.5"):
        """The fields of a form that is filled in; best and worst are places in the tuple."""
        from mturk.answers import best_field, join_shown, seconds_field, shown_field, worst_field
        from mturk.judged import asked

        filled = []
        for one in asked(self.book)[hit_id]:
            filled += [
                (best_field(one.tuple_id), one.items[best]),
                (worst_field(one.tuple_id), one.items[worst]),
                (shown_field(one.tuple_id), join_shown(one.items[::-1])),
                (seconds_field(one.tuple_id), seconds),
            ]
        return [*filled, ("comment", comment)]

    def submit(self, worker, hit_id, fields=None, after=60.0, **said):
        """Let a worker accept and, some seconds later, submit; return the assignment's id."""
        self.work.register(worker, country="DE")
        taken = self.work.accept(worker, hit_id)
        self.running.clock.advance(after)
        given = self.fields(hit_id, **said) if fields is None else fields
        assert self.work.submit(taken.assignment_id, worker, given)
        return taken.assignment_id

    def submit_all(self, workers, **said):
        return {
            (worker, hit_id): self.submit(worker, hit_id, **said)
            for worker in workers
            for hit_id in self.hit_ids()
        }

    def collect(self):
        from mturk.collect import collect
        from mturk.pseudonyms import namer

        return collect(self.client, self.book, namer(self.book), clock=self.now)

    def there(self, assignment_id):
        """An assignment as the service has it."""
        return self.client.get_assignment(AssignmentId=assignment_id)["Assignment"]

    def hit(self, hit_id):
        return self.client.get_hit(HITId=hit_id)["HIT"]

    def bonuses(self, hit_id):
        pages = self.client.get_paginator("list_bonus_payments").paginate(HITId=hit_id)
        return [one for page in pages for one in page["BonusPayments"]]

    def run(self, *arguments, code=0, typed=None):
        """Run a command on the study; return what it says on standard output."""
        from click.testing import CliRunner

        from mturk.cli import main

        done = CliRunner().invoke(main, [*arguments, "--ledger", self.path], input=typed)
        assert done.exit_code == code, (done.output, done.exception)
        self.said = done.stderr
        return done.stdout

    def json(self, *arguments, code=0):
        return json.loads(self.run(*arguments, "--json", code=code))


@pytest.fixture
def make_study(running, files, tmp_path):
    made = []

    def make(**settings):
        made.append(StudyAtService(running, files, tmp_path, **settings))
        return made[-1]

    yield make
    for study in made:
        study.book.close()


@pytest.fixture
def study(make_study):
    return make_study()
