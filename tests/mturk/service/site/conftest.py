"""A service in a folder: a real database, a manual clock, and HITs inserted directly."""

import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the extra giccs[study] is not installed")

import uvicorn
from sqlalchemy import insert, select
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk.kinds.tuples.page import Part, question_xml
from mturk.question_xml import write_html_question
from mturk.service.clock import ManualClock, SystemClock
from mturk.service.rules import lifecycle
from mturk.service.rules.work import WorkerService
from mturk.service.site.app import build_site
from mturk.service.site.links import study_link, worker_link
from mturk.service.site.question_frame import build_frame
from mturk.service.site.studies import PanelStudy
from mturk.service.store.database import Database
from mturk.service.store.schema import hit_type, message, qualification_type
from mturk.study.settings import Settings
from tests.mturk.new_database import new_database
from tests.mturk.service.site.questions import read_questions

START = 1_800_000_000.0
ASKED = (
    '<script type="application/json" id="giccs-tuples">'
    '[{"tuple_id": "t1", "group": "d1", "items": ["a", "b", "c"]}]</script>'
)
ORDINARY = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Question</title></head><body>'
    '<main><h1>Question</h1><form id="mturk_form" method="post" '
    'action="https://www.mturk.com/mturk/externalSubmit">'
    '<p><label>Your answer <input name="answer"></label></p><button>Submit</button></form></main>'
    "</body></html>"
)
RADIOS = "".join(
    f"<fieldset><legend>{choice}</legend>"
    + "".join(
        f'<label><input type="radio" name="{choice}-t1" value="{item}"> {item}</label>'
        for item in "abc"
    )
    + "</fieldset>"
    for choice in ("best", "worst")
)
BEST_WORST = ORDINARY.replace("<button>", f"{RADIOS}<button>").replace("</body>", f"{ASKED}</body>")


@dataclass
class Service:
    """Actions of requesters, and access to the stored data."""

    database: Database
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))

    def __post_init__(self):
        self.work = WorkerService(self.database, self.clock)

    def publish(self, question=ORDINARY, *, title="Judge utterances", places=5, **values):
        """Insert a HIT and return its id; `question` is a page or question XML."""
        xml = (
            question
            if "mechanicalturk.amazonaws.com/AWS" in question
            else write_html_question(question)
        )
        with self.database.write() as connection:
            type_id = self._type(connection, title, values)
            return lifecycle.create_hit(
                connection, self.clock.now(),
                {
                    "hit_type_id": type_id, "expiration": self.clock.now() + 86_400, "question": xml,
                    "annotation": "", "max_assignments": places, "unit": 30,
                },
            )  # fmt: skip

    def _type(self, connection, title, values):
        row = {
            "description": "Read a dialogue and choose.", "keywords": "dialogue, German", "reward": 25,
            "duration": 1800, "auto_approval_delay": 86_400, "qualifications": [], **values,
        }  # fmt: skip
        key = f"{title} {sorted(row.items())}"
        existing_id = connection.scalar(
            select(hit_type.c.hit_type_id).where(hit_type.c.digest == key)
        )
        if existing_id:
            return existing_id
        number = len(connection.execute(select(hit_type.c.hit_type_id)).all())
        type_id = f"3TYPE{number}"
        connection.execute(
            insert(hit_type).values(
                hit_type_id=type_id, group_id=f"3GROUP{number}", digest=key, title=title, **row
            )
        )
        return type_id

    def write(self, worker_id, subject, text):
        """Send a worker a message."""
        with self.database.write() as connection:
            connection.execute(
                insert(message).values(
                    worker_id=worker_id, subject=subject, text=text, at=self.clock.now()
                )
            )

    def qualify(self, name, *, test=None, automatic=False):
        """Offer a qualification and return its id."""
        with self.database.write() as connection:
            connection.execute(
                insert(qualification_type).values(
                    qualification_type_id=f"3Q{name}", name=name, description=f"About {name}",
                    keywords="", status="Active", created=self.clock.now(), test=test,
                    auto_granted=automatic, auto_granted_value=1 if automatic else None,
                )
            )  # fmt: skip
        return f"3Q{name}"


@pytest.fixture
def service(tmp_path):
    database = new_database(tmp_path / "hits.db")
    yield Service(database)
    database.close()


@pytest.fixture
def pages():
    """Questions to publish."""
    return SimpleNamespace(ordinary=ORDINARY, best_worst=BEST_WORST, asked=ASKED)


@dataclass
class Live:
    """The service behind real sockets."""

    service: Service
    site: str
    frame: str

    def personal_link(self, worker_id):
        return worker_link(self.site, self.service.database.secret(), worker_id)

    def study_link(self, name, participant, session="x"):
        link = study_link(self.site, self.service.database.secret(), name)
        return f"{link}?PROLIFIC_PID={participant}&STUDY_ID=s&SESSION_ID={session}"


def serve(stack, socket, application):
    """Run an application on a bound socket until the stack is unwound."""
    config = uvicorn.Config(
        application, log_config=None, log_level="warning", access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    stack.callback(thread.join)
    stack.callback(setattr, server, "should_exit", True)


def start_site(stack, service, studies, *, open_entry=True):
    """Start the site and the frame origin until the stack is unwound."""
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
    site, frame = (
        f"http://127.0.0.1:{listening_socket.getsockname()[1]}" for listening_socket in sockets
    )
    secret, work = service.database.secret(), service.work
    serve(stack, sockets[0], build_site(
        work, secret, frame_url=frame, site_url=site, open_entry=open_entry, studies=studies,
        now=service.clock.now))  # fmt: skip
    serve(stack, sockets[1], build_frame(work, secret, site_url=site, frame_url=frame))
    return Live(service, site, frame)


@pytest.fixture
def live(tmp_path):
    """Start the site and the frame origin, and wait until they listen."""
    database = new_database(tmp_path / "hits.db")
    with ExitStack() as stack:
        stack.callback(database.close)
        dialect = {"id": "dialect", "type": "choice", "text": {"de": "Dialekt?", "en": "Dialect?"},
                   "choices": [{"value": "yes", "en": "Yes"}, {"value": "no", "en": "No"}]}  # fmt: skip
        studies = (
            PanelStudy("pilot", "C0DE-42", title="Wie ähnlich?", hits=2),
            PanelStudy(
                "asking", "C1", screened_out_code="OUT-42", no_consent_code="NO-42", country=False, hits=1,
                questions=read_questions(
                    [{"id": "age", "minimum": 18}, {"id": "first_language"}, dialect]
                ),
            ),
            PanelStudy("open", "", title="Listening", volunteers=True, country=False, return_url=""),
        )  # fmt: skip
        yield start_site(stack, Service(database, SystemClock()), studies)


@pytest.fixture
def timed_site(tmp_path):
    """Return a function from studies to a site on the same database, whose clock can be advanced.

    Sites of one test share the cookies of a browser.
    """
    database = new_database(tmp_path / "hits.db")
    service = Service(database, ManualClock(time.time()))
    with ExitStack() as stack:
        stack.callback(database.close)
        yield lambda *studies: start_site(stack, service, studies, open_entry=False)


LABORATORY = """<!DOCTYPE html><html lang="en"><title>Laboratory</title><body><form method="post">
<input type="hidden" name="assignmentId"><input type="hidden" name="origin">
<label>Answer <input name="answer"></label><button>Send</button></form>
<a href="/survey" target="_blank">Survey</a><script>
const query = new URLSearchParams(location.search), form = document.forms[0];
form.action = query.get("turkSubmitTo") + "/mturk/externalSubmit";
form.elements.assignmentId.value = query.get("assignmentId");
form.elements.origin.value = self.origin;
</script></body></html>"""


SURVEY = """<!DOCTYPE html><html lang="en"><title>Survey</title><body><button>End</button><script>
const query = new URLSearchParams(location.search);
document.querySelector("button").addEventListener("click", () => {
  const answer = new URLSearchParams({ assignmentId: query.get("assignmentId"), code: "R_1" });
  location.href = `${query.get("turkSubmitTo")}/mturk/externalSubmit?${answer}`;
});
</script></body></html>"""


def _responder(html):
    return lambda request: HTMLResponse(html)


@pytest.fixture
def elsewhere():
    """Serve a requester's own page from another host name; return its origin."""
    with ExitStack() as stack:
        one = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        pages = {
            "/task": LABORATORY, "/survey": "<!DOCTYPE html><title>Survey</title>", "/redirect": SURVEY,
        }  # fmt: skip
        routes = [Route(path, _responder(html)) for path, html in pages.items()]
        serve(stack, one, Starlette(routes=routes))
        yield f"http://localhost:{one.getsockname()[1]}"


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a page in a new context with a language and colour scheme."""
    contexts = []

    def opened(*, locale="en-GB", **options):
        context = chromium.new_context(locale=locale, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()


def german_parts():
    """Return two dialogues with three candidates each."""
    texts = ("Um neun.", "Gegen neun Uhr fangen wir an.", "Morgen ist geschlossen.")
    turns = ("Wann öffnet die Bibliothek?", "Um neun Uhr.", "Und am Samstag?", "Um zehn.", "Danke!")
    parts = []
    for name, length in (("d1", 3), ("d2", 5)):
        items = tuple(Candidate(f"{name}-{n}", text) for n, text in enumerate(texts))
        said = tuple(Turn(("user", "system")[n % 2], turns[n]) for n in range(length))
        parts.append(Part(f"t-{name}", Dialogue(name, "", "", said, items), items))
    return parts


@pytest.fixture
def german_question():
    """A HIT of a study of tuples."""
    return question_xml(german_parts(), Settings(language_check=False))
