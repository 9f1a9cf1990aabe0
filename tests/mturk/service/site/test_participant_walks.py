"""Random walks of participants through a study: pay, places, and the session of each task.

Whoever has submitted a task gets a code or a way to reach the researchers, and is never told to return the
submission; whoever has ended without a submitted task holds no place.
"""

import html
import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select

from mturk.service.rules.admission import Entry
from mturk.service.rules.participation import Participants
from mturk.service.rules.work import WorkError
from mturk.service.site.app import build_site
from mturk.service.site.rate_limits import RateLimit, RateLimits
from mturk.service.site.studies import PanelStudy
from mturk.service.store.schema import assignment, hit, participation
from tests.mturk.new_database import new_database
from tests.mturk.service.site.conftest import Service
from tests.mturk.service.site.questions import read_questions
from tests.mturk.service.site.test_participants import FRAME, SITE, Visitor
from tests.nightly import first_in_ci

PEOPLE = ("a" * 24, "b" * 24, "c" * 24)
WAYS = ("open the link of the study again", "write to the researchers", "please open it again")
CODES = re.compile(r'<code translate="no">(\w+)</code>')
N_WALKS, N_STEPS = 16, 40
ENDS = [
    ("You have withdrawn", True), ("The time is over", True), ("You are signed out", True),
    ("Your answer has been received", True), ("You are not taking part", True),
    ("Thank you for your interest", True), ("Sign in", True), ("Finished, thank you!", True),
    ("You have withdrawn", False), ("The time is over", False), ("Request not possible", False),
]  # fmt: skip
"""Pages that all walks together see: (title, whether the participant has submitted a task)."""
TITLE = re.compile("<title>(.*?) – ")
FREED = ("withdrawn", "screened_out", "no_consent", "timed_out")
STUDY = PanelStudy(
    "pilot", "DONE", participants=2, hits=2, minutes=60, timed_out_code="LATE", country=False,
    questions=read_questions([{"id": "age", "minimum": 18}]),
)  # fmt: skip


def worker_id(person):
    return f"APROLIFIC{person.upper()}"


class Walk:
    """People with two devices each, who follow links, submit, leave, lose cookies and come back."""

    def __init__(self, service, seed):
        self.service, self.random = service, random.Random(seed)
        self.service.work.grace_seconds = 60
        self.people = Participants(service.database, service.clock)
        self.version = 1
        self.sites = {}
        self.visitors = {}
        self.tasks = {}  # (person, device) -> (address of the answer, assignment) on the screen
        self.sessions = {}  # assignment -> participation in which it was submitted
        self.seen = Counter()  # (title of a page, whether its participant had submitted a task)
        for _ in range(6):
            self.service.publish(places=9)

    def step(self):
        """Do something at random, and check all rules."""
        actions = {
            self.take_part: 5, self.enter: 3, self.submit: 3, self.look: 2, self.lose_cookie: 1,
            self.withdraw: 1, self.leave: 1, self.release: 1, self.wait: 1, self.change_information: 0.3,
        }  # fmt: skip
        (action,) = self.random.choices([*actions], [*actions.values()])
        action(self.random.choice(PEOPLE), self.random.choice("1112"))
        self.check_sessions()
        self.check_places()

    def site(self):
        if self.version not in self.sites:
            self.sites[self.version] = build_site(
                self.service.work, self.service.database.secret(), frame_url=FRAME, site_url=SITE,
                open_entry=False, studies=(replace(STUDY, version=str(self.version)),),
                now=self.service.clock.now, rates=RateLimits(*[RateLimit(1e6, 1e6)] * 3),
            )  # fmt: skip
        return self.sites[self.version]

    def visitor(self, person, device):
        key = person, device, self.version
        if key not in self.visitors:
            visitor = Visitor(self.site(), base_url=SITE, headers={"accept-language": "en"})
            previous = self.visitors.get((person, device, self.version - 1))
            if previous is not None:
                visitor.cookies = previous.cookies
            self.visitors[key] = visitor
        return self.visitors[key]

    def n_submitted(self, person):
        return self.people.n_submitted(worker_id(person), "pilot")

    def see(self, person, device, page):
        """Check a page, and remember the task on it."""
        assert page.status_code < 500
        text = html.unescape(page.text)
        has_submitted = self.n_submitted(person) > 0
        self.seen[TITLE.search(text)[1], has_submitted] += 1
        if has_submitted:
            assert "Return submission" not in text, text
            assert "not submitted any" not in text, text
            has_code = bool(CODES.search(text))
            path = page.url.path
            continues = path.startswith(("/work/assignment/", "/work/start"))
            can_write = 'href="/work/messages"' in text
            names_way = any(words in text for words in WAYS)
            assert has_code or continues or can_write or names_way, text
        if page.url.path.startswith("/work/assignment/"):
            visitor = self.visitor(person, device)
            self.tasks[person, device] = (
                visitor.answer_address(page), page.url.path.rpartition("/")[2],
            )  # fmt: skip
        return page

    def enter(self, person, device, session=None, age=None, decline=None):
        """Open the link, and fill in the start page."""
        session = session or self.random.choice(["x1", "x1", "x2", "x3"])
        age = age or self.random.choice(["30", "30", "17"])
        decline = self.random.random() < 0.25 if decline is None else decline
        visitor = self.visitor(person, device)
        page = self.see(person, device, visitor.join(self.service, person, session=session))
        if page.url.path != "/work/start":
            return
        fields = {
            "csrf": re.search(r'name="csrf" value="(\w+)"', page.text)[1],
            "question-age": age,
        }
        fields |= {"decline": "yes"} if decline else {"consent": "yes"}
        self.see(person, device, visitor.post("/work/start", data=fields))

    def submit(self, person, device):
        """Submit the task on the screen, also with a lost cookie or after its time."""
        if (person, device) not in self.tasks:
            return
        address, assignment_id = self.tasks.pop((person, device))
        visitor = self.visitor(person, device)
        before = self.row(assignment_id)
        sent = visitor.post(address, data={"answer": "yes"})
        assert sent.status_code in (200, 410)
        after = self.row(assignment_id)
        if before.status == "Accepted" and after.status == "Submitted":
            self.sessions[assignment_id] = before.participation
        page = visitor.post("/work/continue", data={"csrf": "0", "assignment": assignment_id})
        self.see(person, device, page)
        if sent.status_code == 200:
            assert "Access denied" not in page.text
            assert page.status_code == 200

    def take_part(self, person, device):
        """Enter in the usual way and submit some tasks."""
        self.enter(person, device, "x1", "30", decline=False)
        for _ in range(self.random.randint(0, 2)):
            self.submit(person, device)

    def look(self, person, device):
        visitor = self.visitor(person, device)
        self.see(person, device, visitor.get("/work/next"))

    def lose_cookie(self, person, device):
        self.visitor(person, device).cookies.clear()

    def withdraw(self, person, device):
        self.press(person, device, "/work/withdraw")

    def leave(self, person, device):
        self.press(person, device, "/work/leave")

    def press(self, person, device, path):
        """Submit a form without fields, if somebody is signed in."""
        visitor = self.visitor(person, device)
        match = re.search(r'name="csrf" value="(\w+)"', visitor.get("/work/messages").text)
        if match:
            self.see(person, device, visitor.post(path, data={"csrf": match[1]}))

    def release(self, person, device):
        released = self.people.release(worker_id(person), "pilot", actor="test")
        assert released.submitted == self.n_submitted(person)

    def wait(self, person, device):
        self.service.clock.advance(self.random.choice([60, 900, 1900, 3700]))

    def change_information(self, person, device):
        if self.version < 3:
            self.version += 1

    def row(self, assignment_id):
        query = select(assignment).where(assignment.c.assignment_id == assignment_id)
        with self.service.database.read() as connection:
            return connection.execute(query).one()

    def check_sessions(self):
        for assignment_id, number in self.sessions.items():
            row = self.row(assignment_id)
            assert row.participation == number
            assert row.status in ("Submitted", "Approved")

    def check_places(self):
        self.service.work.apply_due_changes()
        now = self.service.clock.now()
        with self.service.database.read() as connection:
            entries = connection.execute(select(participation)).all()
            tasks = connection.execute(select(assignment)).all()
            counts = connection.execute(
                select(hit.c.pending, hit.c.submitted, hit.c.completed)
            ).all()
        at_work = {
            row.participation for row in tasks if row.status not in ("Returned", "Abandoned")
        }
        holders = {
            row.worker_id
            for row in entries
            if row.number in at_work
            or (row.released is None and row.outcome not in FREED and row.joined + 3600 > now)
        }
        assert len(holders) <= STUDY.participants
        for person in PEOPLE:
            assert not self.n_submitted(person) or worker_id(person) in holders
        assert all(min(row) >= 0 for row in counts)
        self.check_newcomer(len(holders))

    def check_newcomer(self, n_holders):
        newcomer = Entry(worker_id("d" * 24), "pilot", "s1", "x9")
        if n_holders < STUDY.participants:
            assert self.people.find(newcomer, "browser", STUDY.rules) is None
            return
        with pytest.raises(WorkError) as refused:
            self.people.find(newcomer, "browser", STUDY.rules)
        assert refused.value.code == "StudyFull"


@pytest.mark.parametrize("seeds", first_in_ci([range(2), range(N_WALKS)]), ids=len)
def test_random_walks_keep_pay_and_places(tmp_path, seeds):
    seen = Counter()
    for seed in seeds:
        print("seed", seed)
        database = new_database(tmp_path / f"{seed}.db")
        walk = Walk(Service(database), seed)
        for _ in range(N_STEPS):
            walk.step()
        seen += walk.seen
        database.close()
    assert len(seen) > 5
    assert seen["Your answer has been received", True] or seen["Finished, thank you!", True]
    if len(seeds) == N_WALKS:
        assert [page for page in ENDS if not seen[page]] == []
