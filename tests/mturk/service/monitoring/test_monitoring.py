"""Monitoring of a running service: request ids, log lines and metrics, without personal data."""

import asyncio
import io
import json
import logging
import os
import re
import resource
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import urllib3
from botocore.exceptions import ClientError
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import IntegrityError
from starlette.requests import Request

from mturk.service.api.protocol import Api
from mturk.service.clock import SystemClock
from mturk.service.monitoring.logs import formatter
from mturk.service.monitoring.metrics import Metrics
from mturk.service.server import ServerOptions, serve
from mturk.service.site.links import worker_link
from mturk.service.site.rate_limits import RateLimit, RateLimits
from mturk.service.site.request_handling import BodyError, read_fields
from mturk.service.store.database import Database
from mturk.service.store.schema import account, hit_type, worker
from mturk.service.store.sqlite_file import ReplacedFileError
from mturk.service.store.statements import Statement
from mturk.service.threads import REQUEST_THREADS
from mturk.study.simulated_browser import WebClient

PAGE = Path(__file__).parents[4] / "docs" / "operations" / "service.md"
KEY, SECRET = "LABORATORY", "a secret of the laboratory"
WORKER, ANSWER, COMMENT = "APRIVATE77", "what-a-worker-answers", "gesagt von mir"
TARGET = "MTurkRequesterServiceV20170117."
FAILURE = "The service failed; the request may be repeated."


def get(url, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib3.request("GET", url, headers=names, retries=False, redirect=False, timeout=300)


def samples(url):
    """Parse a page of metrics: (name, ordered labels) -> value."""
    page = get(url).data.decode()
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


@contextmanager
def logged(form):
    """Capture the log of this process in the format of the service."""
    log_text = io.StringIO()
    handler, root, ours = logging.StreamHandler(log_text), logging.getLogger(), "mturk"
    handler.setFormatter(formatter(form))
    before = logging.getLogger(ours).level
    # importing Streamlit, in a test before this one, keeps uvicorn's records from the root
    uvicorn = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
    propagated = [logger.propagate for logger in uvicorn]
    root.addHandler(handler)
    logging.getLogger(ours).setLevel(logging.INFO)
    for logger in uvicorn:
        logger.propagate = True
    try:
        yield log_text
    finally:
        root.removeHandler(handler)
        logging.getLogger(ours).setLevel(before)
        for logger, value in zip(uvicorn, propagated, strict=True):
            logger.propagate = value


def lines_of(log_text):
    return [json.loads(line) for line in log_text.splitlines()]


def client(url, secret=SECRET):
    return boto3.client(
        "mturk", endpoint_url=url, region_name="us-east-1", aws_access_key_id=KEY,
        aws_secret_access_key=secret,
    )  # fmt: skip


def do_a_hit(found, examples):
    """Publish, complete and approve a HIT, and send some refused requests."""
    requester = client(found.api)
    hit = requester.create_hit(**examples.HIT)["HIT"]["HITId"]
    with pytest.raises(ClientError) as caught:
        client(found.api, "what somebody guessed").get_account_balance()
    found.refused = caught.value.response["ResponseMetadata"]
    asked = []
    person = WebClient(
        found.api, on_response=lambda path, _: asked.append(path), stop_event=threading.Event()
    )
    link = worker_link(found.api, found.database.secret(), WORKER)
    page = person.get(link)
    page = person.post("/work/start", page.form("/work/start").fields | {"country": "DE"})
    page = person.post("/work/accept", page.form("/work/accept").fields)
    person.get(page.frame)
    query = parse_qs(urlsplit(page.frame).query)
    submit = f"{query['turkSubmitTo'][0]}/mturk/externalSubmit"
    fields = {"assignmentId": query["assignmentId"][0], "answer": ANSWER, "comment": COMMENT}
    outcomes = [person.post(submit, fields).status for _ in range(2)]  # the second is known already
    outcomes += [person.post(submit.replace("/submit/", "/submit/x"), fields).status]
    outcomes += [
        person.get(f"/work/preview/{path}?secret=query").status for path in ("3A", "%0A{}")
    ]
    person.close()
    assert outcomes == [200, 200, 403, 404, 404]
    (assignment,) = requester.list_assignments_for_hit(HITId=hit)["Assignments"]
    assert ANSWER in assignment["Answer"]
    found.answer = requester.approve_assignment(AssignmentId=assignment["AssignmentId"])
    found.private = [
        KEY, SECRET, WORKER, ANSWER, COMMENT, link, link.rpartition("=")[2], submit.split("/")[4],
        page.frame.rpartition("/")[2], hit, assignment["AssignmentId"], "secret=query", "guessed",
        *(value for value in person.cookies.values() if value),
    ]  # fmt: skip
    found.asked = asked


@pytest.fixture(scope="module")
def watched(tmp_path_factory, commands, examples):
    """A process with keys behind a trusted proxy, in which a HIT was completed, and its log."""
    folder = tmp_path_factory.mktemp("watched")
    words = ("--db", folder / "hits.db", "--port", "0", "--json", "--log", "json", "--metrics",
             "127.0.0.1:0", "--trust-proxy", "127.0.0.1")  # fmt: skip
    environment = os.environ | {"GICCS_KEYS": json.dumps({KEY: SECRET})}
    process = commands.start("mturk-hits", "serve", *words, env=environment)
    result = SimpleNamespace(**json.loads(process.stdout.readline()))
    result.database = Database(folder / "hits.db")
    try:
        do_a_hit(result, examples)
        result.given = [
            get(f"{result.api}/work/", X_Request_ID=name) for name in ("from.the-proxy_1", "no!")
        ]
        result.healthy = (
            get(f"{result.api}/healthz"),
            get(result.metrics.replace("metrics", "healthz")),
        )
        result.numbers, result.page = samples(result.metrics), get(result.metrics).data.decode()
    finally:
        process.terminate()
        _, result.written = process.communicate()
        result.database.close()
    result.lines = lines_of(result.written)
    return result


def test_each_request_is_one_line_of_json(watched):
    answered = [line for line in watched.lines if line["event"] == "answered"]
    for line in answered:
        assert line.keys() - {"outcome", "operation", "page", "frame"} == {
            "timestamp", "level", "logger", "event", "request_id", "method", "status", "milliseconds",
        }  # fmt: skip
        assert len(line.keys() & {"operation", "page", "frame"}) == 1
        assert line["timestamp"].endswith("Z")
    events = [line["operation"] for line in answered if "operation" in line]
    assert events == ["CreateHIT", "unknown", "ListAssignmentsForHIT", "ApproveAssignment"]
    taken = [line["outcome"] for line in answered if line.get("page", "").startswith("/submit/")]
    assert taken == ["done", "again", "refused"]
    assert len({line["request_id"] for line in answered}) == len(answered)


def test_nothing_tells_of_a_worker_an_answer_or_a_secret(watched):
    assert len(watched.private) > 12
    for private in (*watched.private, "127.0.0.1"):
        assert private not in watched.written
        assert private not in watched.page


def test_the_numbers_are_what_was_done(watched):
    def requests(kind):
        return sum(
            value
            for (name, *labels), value in watched.numbers.items()
            if name == "giccs_http_requests_total" and labels[0] == kind
        )

    question = [path for path in watched.asked if path.startswith("/question/")]
    assert (requests("api"), requests("frame")) == (4, len(question))
    assert requests("page") == len(watched.asked) - len(question) + len(watched.given)
    assert watched.numbers["giccs_http_requests_total", "api", "unknown", "400"] == 1
    assert watched.numbers["giccs_http_request_seconds_count", "api", "CreateHIT"] == 1
    submit = "/submit/{token}/mturk/externalSubmit"
    assert watched.numbers["giccs_http_requests_total", "page", submit, "403"] == 1
    assert watched.numbers["giccs_submissions_total",] == 1
    assert watched.numbers["giccs_assignments", "Approved"] == 1
    assert (
        sum(value for key, value in watched.numbers.items() if key[0] == "giccs_assignments") == 1
    )
    assert sum(value for key, value in watched.numbers.items() if key[0] == "giccs_hits") == 1
    # at least: the HIT, its worker, its place, its answer, its approval
    assert watched.numbers["giccs_database_write_wait_seconds_count",] >= 5
    assert watched.numbers["process_resident_memory_bytes",] > 1e6
    assert watched.numbers["giccs_database_up",] == 1


def test_a_request_has_one_id_in_the_answer_in_its_header_and_in_the_log(watched):
    metadata = watched.answer["ResponseMetadata"]
    assert metadata["HTTPHeaders"]["x-request-id"] == metadata["RequestId"]
    (line,) = (line for line in watched.lines if line.get("request_id") == metadata["RequestId"])
    assert (line["operation"], line["status"]) == ("ApproveAssignment", 200)
    refused = [
        line for line in watched.lines if line.get("request_id") == watched.refused["RequestId"]
    ]
    assert [line["logger"] for line in refused] == [
        "mturk.api",
        "mturk.requests",
    ]  # one in a thread


def test_a_trusted_proxy_gives_ids_where_they_are_ids(watched):
    taken, made = (answer.headers["X-Request-ID"] for answer in watched.given)
    assert taken == "from.the-proxy_1"
    assert made != "no!"
    assert {taken, made} <= {line.get("request_id") for line in watched.lines}


def test_probes_are_answered_on_both_ports_and_fill_no_log(watched):
    for answer in watched.healthy:
        assert answer.status == 200
        result = answer.json()
        assert (result["status"], result["database"]) == ("ok", "ok")
    assert watched.healthy[0].headers["X-Request-ID"] not in watched.written
    assert "healthz" not in watched.page


def test_the_documentation_names_metrics_that_are_there(watched):
    section = PAGE.read_text("utf-8").partition("## Monitor")[2].partition("\n## ")[0]
    names = set(re.findall(r"giccs_[a-z_]+", section)) - {"giccs_"}
    assert len(names) > 6
    for name in names:
        assert name in watched.page


def test_strangers_give_no_ids(service):
    answer = get(f"{service.site}/work/", X_Request_ID="chosen")
    assert answer.headers.getlist("X-Request-ID") != ["chosen"]
    assert len(answer.headers["X-Request-ID"]) == 30


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "ä", "a;b", "a,b"])
def test_a_proxy_cannot_give_what_is_no_id(tmp_path, endpoint_running, given):
    options = ServerOptions(port=0, trust_proxy="127.0.0.1")
    with endpoint_running(tmp_path, options) as service:
        for address in (service.site, service.addresses.frames):
            answer = get(f"{address}/nowhere", X_Request_ID=given.encode())
            assert len(answer.headers["X-Request-ID"]) == 30
        twice = urllib3.HTTPHeaderDict([("X-Request-ID", "one"), ("X-Request-ID", "two")])
        answer = urllib3.request("GET", f"{service.site}/work/", headers=twice, timeout=300)
        assert answer.headers["X-Request-ID"] not in ("one", "two", "one, two")


def test_a_failure_is_one_line_with_the_id_that_the_worker_sees(service):
    with service.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE hit RENAME TO gone"))
    with logged("json") as log_text:
        person = WebClient(service.site, on_response=lambda *_: None, stop_event=threading.Event())
        form = person.get("/work/").form("/work/enter")
        page = person.post("/work/enter", form.fields | {"worker": WORKER})
        page = person.post("/work/start", page.form("/work/start").fields | {"country": "DE"})
        person.close()
        with pytest.raises(ClientError, match=FAILURE) as caught:
            service.client().get_hit(HITId="3A")
        # the server logs the failure of a page after it has sent it, so perhaps after the other one
        end = time.monotonic() + 120
        while "uvicorn.error" not in log_text.getvalue() and time.monotonic() < end:
            time.sleep(0.05)
    assert page.status == 500
    # on a slow machine the minute's round of the server fails meanwhile, of no request
    failures = [
        line
        for line in lines_of(log_text.getvalue())
        if "exception" in line and line["logger"] != "mturk.server"
    ]
    failures.sort(key=lambda line: line["logger"], reverse=True)
    assert [line["logger"] for line in failures][:2] == ["uvicorn.error", "mturk.api"]
    shown = page.text.partition("Request ID: ")[2].partition("<")[0]
    assert failures[0]["request_id"] == shown
    last = caught.value.response["ResponseMetadata"]["RequestId"]  # boto3 has repeated it
    assert failures[-1]["request_id"] == last
    for line in failures:
        assert "no such table: hit" in line["exception"]
    assert WORKER not in log_text.getvalue()


def test_who_goes_away_while_sending_is_no_failure():
    async def receive():
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(BodyError) as caught:
        asyncio.run(read_fields(request))
    assert caught.value.status == 400


def test_a_method_that_somebody_makes_up_is_in_no_line(service):
    with logged("json") as log_text:
        for method in ("APRIVATE77", "PURGE", "DELETE"):  # the first is no method of HTTP
            urllib3.request(method, f"{service.site}/work/", timeout=300)
        health(service.site)  # answered when the lines of those before are written
    refused, *lines = lines_of(log_text.getvalue())
    assert refused["event"] == "Invalid HTTP request received."
    assert [line["method"] for line in lines] == ["other", "DELETE"]
    assert "APRIVATE77" not in log_text.getvalue()


def record(message, **fields):
    made = logging.LogRecord("mturk.x", logging.INFO, "f.py", 1, message, None, None)
    made.__dict__.update(fields)
    return made


def fault():
    password = "hunter2-in-a-local-variable"  # noqa: F841
    try:
        raise ValueError("bad\n2026-01-01T00:00:00Z [info] forged \x1b[31m")
    except ValueError:
        return sys.exc_info()


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_value_forges_a_line_or_commands_a_terminal(form):
    forged = "a\n2026-01-01T00:00:00Z [info] forged\r\x1b[2J\x85"
    text = formatter(form).format(record(forged, outcome=forged, exc_info=fault()))
    first, *more = text.splitlines()
    assert "forged" in first
    assert not more if form == "json" else all(line.startswith("    ") for line in more)
    assert not {"\x1b", "\r", "\x85"} & set(text)
    assert "hunter2" not in text
    assert "Traceback" in text


@pytest.mark.parametrize("form", ["text", "json"])
def test_only_our_fields_are_in_a_line(form):
    text = formatter(form).format(record("told", status=204, worker=WORKER, color_message=ANSWER))
    assert "204" in text
    assert WORKER not in text
    assert ANSWER not in text


def health(address):
    answer = get(f"{address}/healthz")
    return answer.status, answer.json()["database"]


def test_a_file_that_another_one_replaced_is_not_well_until_it_is_back(service, tmp_path):
    file, aside = tmp_path / "service" / "hits.db", tmp_path / "aside"
    assert health(service.site) == (200, "ok")
    with logged("json") as log_text:
        os.rename(file, aside)
        assert health(service.site) == (503, "cannot be read")
        file.write_bytes(b"garbage" * 10_000)
        assert [health(service.site) for _ in range(2)] == [(503, "cannot be read")] * 2
        os.rename(aside, file)
        assert [health(service.site) for _ in range(2)] == [(200, "ok")] * 2
    events = [line["event"] for line in lines_of(log_text.getvalue())]
    assert events == [
        "unhealthy: the database cannot be read",
        "healthy again: the database can be read and written",
    ]


def test_a_full_disk_is_not_well_until_there_is_space(service):
    """SIGXFSZ is ignored by Python, so the limit of the file size refuses writes as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with logged("json") as log_text:
            assert health(service.site) == (503, "cannot be written")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "unhealthy: the database cannot be written" in log_text.getvalue()
    assert health(service.site) == (200, "ok")


def checkpoint(file):
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_a_file_that_was_overwritten_is_not_well_until_it_is_restored(service, tmp_path):
    file = tmp_path / "service" / "hits.db"
    service.client().create_hit_type(
        Title="t", Description="d", Reward="0.01", AssignmentDurationInSeconds=60
    )
    checkpoint(file)
    whole = file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(b"garbage!" * (len(whole) // 8))
    assert health(service.site) == (503, "cannot be read")
    with file.open("r+b") as opened:
        opened.write(whole)
    assert health(service.site) == (200, "ok")


def add_type(service, title):
    service.client().create_hit_type(
        Title=title, Description="d", Reward="0.01", AssignmentDurationInSeconds=60
    )


def is_used(database):
    """Return whether the database can be used; all three ways must agree."""
    used = []
    query = Statement(select(hit_type.c.title).limit(1))
    for use in (
        lambda: database.first(query, {}),
        lambda: database.read().__enter__(),
        lambda: database.write().__enter__(),
    ):
        try:
            use()
        except ReplacedFileError:
            used.append(False)
        else:
            used.append(True)
    assert len(set(used)) == 1
    return used[0]


@pytest.mark.parametrize("n_logged", [0, 1, 5])
@pytest.mark.parametrize("n_later", [1, 5])
def test_an_older_copy_written_over_the_file_is_not_well_and_is_not_used(
    service, tmp_path, n_later, n_logged
):
    """It has the same inode and valid pages, and the first page can be in the write-ahead log."""
    file = tmp_path / "service" / "hits.db"
    add_type(service, "first")
    checkpoint(file)
    older = file.read_bytes()
    for number in range(n_later):
        add_type(service, f"later {number}")
    checkpoint(file)
    add_type(service, "seen in the file")
    checkpoint(file)
    for number in range(n_logged):
        add_type(service, f"logged {number}")
    assert health(service.site) == (200, "ok")
    newest = file.read_bytes()
    file.write_bytes(older)
    for content in (older, older[:50], b"", b"garbage" * 9):
        file.write_bytes(content)
        assert health(service.site) == (503, "cannot be read")
        assert not is_used(service.database)
    file.write_bytes(newest)
    assert health(service.site) == (200, "ok")
    assert is_used(service.database)


def test_an_older_copy_restored_by_sqlite_takes_no_writes(service, tmp_path):
    """The backup interface writes it in a transaction, which the service reads as any other."""
    file, older, newest = tmp_path / "service" / "hits.db", tmp_path / "older", tmp_path / "newest"

    def copy(source, target):
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)

    add_type(service, "first")
    copy(file, older)
    for number in range(3):
        add_type(service, f"later {number}")
    copy(file, newest)
    copy(older, file)
    for _ in range(3):
        with pytest.raises(ReplacedFileError, match="older copy"):
            Api(service.database, SystemClock(), {}).call(
                "CreateHITType",
                {
                    "Title": "t",
                    "Description": "d",
                    "Reward": "0.01",
                    "AssignmentDurationInSeconds": 60,
                },
            )
    assert not is_used(service.database)
    assert health(service.site) == (503, "cannot be read")
    copy(newest, file)
    assert health(service.site) == (200, "ok")
    add_type(service, "after the restore")


@pytest.mark.parametrize("removed", [["-wal"], ["-shm"], ["-wal", "-shm"]])
def test_without_the_files_beside_it_the_database_is_not_used_and_nothing_is_lost(
    tmp_path, endpoint_running, removed
):
    with endpoint_running(tmp_path, ServerOptions(port=0)) as running:
        file = Path(running.database.url.database)
        running.work.register("ABEFORE")
        for suffix in removed:
            Path(f"{file}{suffix}").unlink()
        assert not is_used(running.database)
        assert not any(Path(f"{file}{suffix}").exists() for suffix in removed)
    with closing(Database(file)) as again, again.read() as connection:
        assert connection.scalars(select(worker.c.worker_id)).all() == ["ABEFORE"]


@pytest.mark.parametrize("n_logged", [0, 3])
def test_a_copy_that_replaces_the_content_is_unchanged_after_the_service_ends(
    tmp_path, endpoint_running, n_logged
):
    with endpoint_running(tmp_path, ServerOptions(port=0)) as running:
        file = Path(running.database.url.database)
        running.work.register("AFIRST")
        checkpoint(file)
        older = file.read_bytes()
        for number in range(3):
            running.work.register(f"ALATER{number}")
        checkpoint(file)
        for number in range(n_logged + 1):
            running.work.register(f"ALOGGED{number}")
        file.write_bytes(older)
        for suffix in ("-wal", "-shm"):
            Path(f"{file}{suffix}").unlink()
    assert file.read_bytes() == older
    with closing(Database(file)) as again, again.read() as connection:
        assert connection.scalars(select(worker.c.worker_id)).all() == ["AFIRST"]


def test_requests_while_the_file_is_away_lose_nothing_that_was_only_in_the_log(service, tmp_path):
    file, aside = tmp_path / "service" / "hits.db", tmp_path / "aside"
    title = service.client().create_hit_type(
        Title="only in the log", Description="d", Reward="0.01", AssignmentDurationInSeconds=60
    )["HITTypeId"]
    os.rename(file, aside)
    with ExitStack() as busy:  # the next reader needs a new connection
        for _ in range(service.database.engine.pool.checkedin()):
            busy.enter_context(closing(service.database.engine.connect()))
        assert not is_used(service.database)
    assert not file.exists()
    os.rename(aside, file)
    assert health(service.site) == (200, "ok")
    query = select(hit_type.c.title).where(hit_type.c.hit_type_id == title)
    with service.database.read() as connection:
        assert connection.scalar(query) == "only in the log"
    other = Database(file)
    with other.read() as connection:
        assert connection.scalar(query) == "only in the log"
    other.close()


def test_transactions_of_other_processes_are_no_older_copy(service, tmp_path):
    file = tmp_path / "service" / "hits.db"
    other = Database(file)
    for database in (other, service.database, other):
        with database.write() as connection:
            connection.execute(update(account).values(on_hold=0))
        other.probe()
        service.database.probe()
    numbers = []
    for value in (0, None):
        with other.write() as connection:
            if value is not None:
                connection.execute(update(account).values(on_hold=value))
        with other.read() as connection:
            numbers.append(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    assert numbers[0] == numbers[1]  # without a change there is no new number
    other.close()


def test_probes_need_no_session_no_turn_and_no_patience(tmp_path, endpoint_running):
    once = RateLimit(burst=1, per_second=0.001)
    with (
        endpoint_running(
            tmp_path, ServerOptions(port=0, rates=RateLimits(once, once, once))
        ) as service,
        service.database.write(),
    ):
        assert [health(service.site)[0] for _ in range(5)] == [200] * 5
        assert [get(f"{service.site}/work/").status for _ in range(2)] == [200, 429]
        assert get(f"{service.site}/healthz", Host="elsewhere.example").status == 400


@contextmanager
def serving(database):
    """Run a service with metrics on a database in this process; yield its addresses."""
    told, up = [], threading.Event()

    def ready(*found):
        told.extend(found)
        up.set()

    options = ServerOptions(port=0, metrics=("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(database, SystemClock(), options, ready))
    thread.start()
    try:
        assert up.wait(120)
        yield told[0]
    finally:
        told[1]()
        thread.join(120)


def test_a_server_that_is_stopped_or_hangs_is_not_well_until_it_answers(cluster):
    database = Database(cluster.create("watched"))
    with closing(database), serving(database) as addresses:
        assert health(addresses.site) == (200, "ok")
        cluster.stop()
        try:
            assert health(addresses.site) == (503, "cannot be read")
            numbers = samples(addresses.metrics)
            assert numbers["giccs_database_up",] == 0
            assert ("giccs_hits", "Assignable") not in numbers
            assert numbers["process_resident_memory_bytes",] > 1e6
        finally:
            cluster.start()
        assert health(addresses.site) == (200, "ok")
        with database.engine.connect() as connection:
            connection.execute(text("LOCK TABLE account IN ACCESS EXCLUSIVE MODE"))
            with ThreadPoolExecutor(8) as pool:
                answers = [*pool.map(health, [addresses.site] * 8)]
            assert answers == [(503, "does not answer within 2 s")] * 8
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            assert connection.scalar(waiting) == 1  # one look for all who ask
        assert health(addresses.site) == (200, "ok")
        numbers = samples(addresses.metrics)
        assert (numbers["giccs_database_up",], numbers["giccs_hits", "Assignable"]) == (1, 0)


def test_numbers_are_told_while_all_threads_wait_for_a_writer(tmp_path):
    target = {"X-Amz-Target": f"{TARGET}DisassociateQualificationFromWorker"}
    body = json.dumps({"WorkerId": "A1", "QualificationTypeId": "3A"})
    with closing(Database(tmp_path / "hits.db")) as database, serving(database) as addresses:

        def write(_):
            return urllib3.request(
                "POST", addresses.api, headers=target, body=body, retries=False, timeout=300
            )

        with ThreadPoolExecutor(45) as pool:
            with database.write():
                answers = pool.map(write, range(45))
                while database._writers._n_queueing < REQUEST_THREADS:
                    time.sleep(0.01)
                page = urllib3.request("GET", addresses.metrics, retries=False, timeout=300)
                assert b"giccs_database_up 1.0" in page.data
            assert {answer.status for answer in answers} == {400}


def test_strangers_make_up_no_names(tmp_path):
    with closing(Database(tmp_path / "hits.db")) as database, serving(database) as addresses:
        for made_up in ("a", "b/c", "%0Ax=1", "work/preview/3A", "work/preview/3B", "join/x"):
            assert get(f"{addresses.site}/{made_up}").status in (303, 403, 404)
            target = {"X-Amz-Target": TARGET + made_up}
            urllib3.request("POST", addresses.site, headers=target, body=b"{}", timeout=300)
            urllib3.request("GET", f"{addresses.frames}/{made_up}", timeout=300)
        assert (
            get(addresses.metrics, Accept="application/openmetrics-text; version=x").status == 200
        )
        numbers = samples(addresses.metrics)
    counted = {key[1:3] for key in numbers if key[0] == "giccs_http_requests_total"}
    assert counted == {
        ("page", "unmatched"), ("page", "/work/preview/{hit_id}"), ("page", "/join/{token}"),
        ("api", "unknown"), ("frame", "unmatched"),
    }  # fmt: skip


def test_an_error_of_the_server_repeats_no_value(cluster):
    database = Database(cluster.create("repeated"))
    values = {"worker_id": WORKER, "registered": 0.0}
    with closing(database), logged("json") as log_text:
        with database.write() as connection:
            connection.execute(insert(worker), values)
        with pytest.raises(IntegrityError) as caught, database.write() as connection:
            connection.execute(insert(worker), values)
        logging.getLogger("mturk").error("failed", exc_info=caught.value)
    assert "worker_pkey" in log_text.getvalue()
    assert WORKER not in log_text.getvalue()


def test_each_service_has_numbers_of_its_own(tmp_path):
    stores = [Database(tmp_path / f"{number}.db") for number in range(2)]
    database, other = map(Metrics, stores)
    database.count_request("page", "/work/", 200, 0.1, "")
    with stores[0].write():
        pass
    labels = {"kind": "page", "name": "/work/", "status": "200"}
    waits = "giccs_database_write_wait_seconds_count"
    assert database.registry.get_sample_value("giccs_http_requests_total", labels) == 1
    assert other.registry.get_sample_value("giccs_http_requests_total", labels) is None
    assert [each.registry.get_sample_value(waits) for each in (database, other)] == [1, 0]
    for store in stores:
        store.close()


def test_a_writer_that_gives_up_has_waited_too(tmp_path):
    url = tmp_path / "hits.db"
    holder, waiting = Database(url), Database(url)
    metrics = Metrics(waiting)
    with waiting.read() as connection:  # the one connection that the write will use
        connection.exec_driver_sql("PRAGMA busy_timeout = 10")
    with holder.write(), pytest.raises(Exception, match="locked"), waiting.write():
        raise AssertionError("two writers at once")
    count = "giccs_database_write_wait_seconds_count"
    assert metrics.registry.get_sample_value(count) == 1
    for database in (holder, waiting):
        database.close()
