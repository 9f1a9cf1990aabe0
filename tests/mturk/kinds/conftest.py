"""Fixtures: studies of sentence pairs at a running service, published and collected by the commands."""

import json

import pytest

pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

PAIRS = """\
sentence1,sentence2,source1,source2
Two children dig a moat.,Two old men play chess.,a,b
"A <b>red</b> kite, ""high"".",A red bus ${B} ]]> stops 🙂.,c,d
Rain drums on the tent.,She shakes out her umbrella.,e,f
"""
TRIPLETS = """\
uid,sentence1,sentence2,condition,label
u1,Two children dig a moat.,Two old men play chess.,the number of people,5
u2,Two children dig a moat.,Two old men play chess.,the age of the people,1
u3,"A <b>red</b> kite, ""high"".",A red bus ${B} ]]> stops 🙂.,the colour,4
u4,"A <b>red</b> kite, ""high"".",A red bus ${B} ]]> stops 🙂.,what <i>moves</i> it,2
"""


class Study:
    """A requester of sentence pairs with a directory."""

    def __init__(self, running, folder):
        self.running, self.folder, self.url = running, folder, running.url
        self.ledger = str(folder / "ledger.db")

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def config(self, kind, **settings):
        values = {"approval_rate_above": -1, "sentence_language": "en"} | settings
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
        return self.file(f"{kind}.toml", f'kind = "{kind}"\n{"".join(lines)}')

    def run(self, *arguments, code=0):
        """Run a command; return its standard output."""
        from click.testing import CliRunner

        from mturk.cli import main

        done = CliRunner().invoke(main, list(map(str, arguments)))
        assert done.exit_code == code, (done.output, done.exception)
        self.stderr = done.stderr
        return done.stdout

    def publish(self, kind, table, **settings):
        given = table, "--config", self.config(kind, **settings), "--endpoint", self.url
        return self.run("publish", *given, "--ledger", self.ledger)

    def simulate(self, *more):
        return self.run("simulate", "--endpoint", self.url, *more)

    def collect(self, name):
        """Collect into a file; return its path."""
        path = str(self.folder / name)
        self.run("collect", "--ledger", self.ledger, "-o", path)
        return path

    def answers(self):
        """Return the fields of all answers at the service."""
        from mturk.answers import from_xml

        rows = self.running.rows("SELECT answer FROM assignment WHERE status = 'Submitted'")
        return [dict(from_xml(row[0])) for row in rows]


@pytest.fixture
def study(running, tmp_path):
    return Study(running, tmp_path)


@pytest.fixture
def pairs_csv(study):
    return study.file("pairs.csv", PAIRS)


@pytest.fixture
def triplets_csv(study):
    return study.file("triplets.csv", TRIPLETS)
