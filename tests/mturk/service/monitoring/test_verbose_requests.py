"""giccs annotate --verbose with a service with keys: log of every call, without secrets."""

import json
import os
import re
import time

import pytest

from mturk.service.server import ServerOptions

KEY, SECRET = "LABORATORY", "a secret of the laboratory"
WRONG = "what somebody guessed instead"
WORKER, SAID = "AERIKAMUSTERMANN", "I know nobody here"
DIALOGUE = {
    "dialogue_id": "d1",
    "source": "written",
    "domain": "travel",
    "language": "de",
    "turns": [
        {"speaker": "A", "text": "Ich will nach Wien."},
        {"speaker": "B", "text": "Wann fährt der Zug?"},
    ],
    "candidates": [{"utterance_id": f"d1-u{n}", "text": f"Um {n} Uhr."} for n in range(1, 6)],
}
SETTINGS = 'approval_rate_above = -1\ncountries = []\ntitle = "Which is nearest?"\n'


@pytest.fixture(scope="module")
def study(endpoint_running, commands, tmp_path_factory):
    """A service with one key and a study; returns a function that runs commands."""
    folder = tmp_path_factory.mktemp("verbose")
    (folder / "dialogues.jsonl").write_text(json.dumps(DIALOGUE) + "\n", "utf-8")
    rows = "tuple_id,group,item1,item2,item3\nt1,d1,d1-u1,d1-u2,d1-u3\nt2,d1,d1-u3,d1-u4,d1-u5\n"
    (folder / "tuples.csv").write_text(rows)
    (folder / "hits.toml").write_text(SETTINGS)
    with endpoint_running(
        folder, ServerOptions(port=0, keys={KEY: SECRET}), time.time()
    ) as service:

        def run(*arguments, secret=SECRET, code=0):
            keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": secret}
            nothing = str(folder / "none")
            files = {"AWS_CONFIG_FILE": nothing, "AWS_SHARED_CREDENTIALS_FILE": nothing}
            environment = os.environ | keys | files
            done = commands.run("mturk-hits", *arguments, "--verbose", cwd=folder, env=environment)
            assert done.returncode == code, done.stderr
            return done.stderr

        run.service = service
        yield run


def published(study):
    data = ("tuples.csv", "--dialogues", "dialogues.jsonl", "--config", "hits.toml")
    return study("publish", *data, "--endpoint", study.service.api, "--yes")


def submitted(study):
    """Let a worker complete every HIT with a comment."""
    hits = study.service.client(aws_access_key_id=KEY, aws_secret_access_key=SECRET).list_hits()
    study.service.work.register(WORKER, country="DE")
    for hit in hits["HITs"]:
        taken = study.service.work.accept(WORKER, hit["HITId"])
        fields = [("comment", SAID)]
        assert study.service.work.submit(taken.assignment_id, WORKER, fields)
    return len(hits["HITs"])


def test_every_call_is_told_and_no_secret_of_anybody(study):
    output = published(study)
    assert re.search(
        r"mturk\.study\.client: CreateHITWithHITType: done, \d+\.\d{3} s, request \S+,", output
    )
    assert re.search(r"mturk\.study\.ledger: ledger ledger\.db: 0 HITs, 0 assignments", output)
    assert "mturk.study.publish: creating " in output
    number = submitted(study)
    collected = study("collect", "-o", "judgments.csv", "--worker-ids", "real")
    assert "mturk.study.client: ListAssignmentsForHIT: done" in collected
    assert f"mturk.study.collect: {number} new assignments" in collected
    refused = study("status", secret=WRONG, code=1)
    assert "ended by ServiceError" in refused
    assert re.search(r"mturk\.study\.client: ListHITs: InvalidSignatureException, ", refused)
    for private in (
        SECRET, WRONG, KEY, "AWS4-HMAC", "Signature=", WORKER, SAID, "Zug", "DEBUG botocore",
        "DEBUG urllib3",
    ):  # fmt: skip
        assert private not in output + collected + refused, private
