"""Commands say which kind of file they were given in place of the one that they read."""

import json

import pytest
from click.testing import CliRunner

from bws.base.file_kinds import KINDS, kind_of
from bws.cli import make_tuples, reliability, score, simulate
from giccs.cli.building import build
from giccs.cli.statistics import stats
from giccs.cli.validation import validate

TURNS = [{"speaker": "user", "text": "Hi"}, {"speaker": "system", "text": "Hello"}]
DIALOGUE = {"dialogue_id": "d", "turns": TURNS, "candidates": [{"utterance_id": "a", "text": "x"}]}
ITEM = {
    "item_id": "a", "dialogue_id": "d", "source": "", "domain": "", "n_turns": 2, "turns": TURNS,
    "utterance_id": "a", "utterance": "x", "score": 0.5,
}  # fmt: skip
FILES = {
    "judgments": "tuple_id,group,item1,item2,best,worst\nt1,,a,b,a,b\n",
    "tuples": "tuple_id,group,item1,item2\nt1,,a,b\nt2,,a,c\n",
    "benchmark": "".join(json.dumps(ITEM | {"item_id": i}) + "\n" for i in "ab"),
    "dialogues": "".join(json.dumps(DIALOGUE | {"dialogue_id": i}) + "\n" for i in "de"),
    "scores": "item,group,score,appearances,best,worst\na,,0.5,2,1,0\nb,,0.5,2,1,0\n",
    "soft-targets": (
        "tuple_id,group,item,annotations,best,worst,p_best,p_worst\nt,,a,1,1,0,1,0\nt,,b,1,0,1,0,1\n"
    ),
    "csts": "sentence1,sentence2,condition,label\na,b,c,1\na,b,d,2\n",
    "pairs": "sentence1,sentence2,score\na,b,1\nc,d,2\n",
    "chats": json.dumps({"messages": [{"role": "user", "content": "Hi"}]}) + "\n",
    "sharegpt": json.dumps({"conversations": [{"from": "human", "value": "Hi"}]}) + "\n",
    "anchors": "group,item,annotator,kind,answer\nd,a,p,rating,5\nd,b,p,rating,9\n",
    "anchor-plan": "group,anchor,kind,item1,item2\nd,1,rating,a,b\nd,2,rating,b,a\n",
    "dialogue-table": "id,context,candidates\n1,x,a|b\n2,y,c|d\n",
}
READS = {
    "judgments": [(score, []), (reliability, [])],
    "tuples": [(simulate, ["--truth", "scores.csv"])],
    "benchmark": [(validate, []), (stats, [])],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, text in FILES.items():
        for end in ("csv", "jsonl"):  # wrong ends of names are no excuse
            (tmp_path / f"{kind}.{end}").write_text(text)
    return tmp_path


def named(kind):
    return (
        f"{kind}.jsonl"
        if kind in ("benchmark", "dialogues", "chats", "sharegpt")
        else f"{kind}.csv"
    )


def problems(command, *arguments):
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


def test_every_kind_is_recognised_by_its_columns():
    for kind, text in FILES.items():
        first = text.partition("\n")[0]
        columns = list(json.loads(first)) if first.startswith("{") else first.split(",")
        assert kind_of(columns).name == kind
    assert set(FILES) == set(KINDS)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("expected", READS)
def test_a_command_names_the_kind_that_it_was_given(folder, expected, kind):
    for command, more in READS[expected]:
        if kind == expected or (command is stats and kind == "dialogues"):
            continue
        error = problems(command, named(kind), *more)
        assert f"this is {KINDS[kind].title}" in error, (command.name, error)
        assert KINDS[kind].readers in error
        assert len(error.splitlines()) <= 2


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "dialogues"])
def test_giccs_build_names_what_is_no_dialogues_file(folder, kind):
    error = problems(build, "--dialogues", named(kind), "--scores", "scores.csv", "-o", "b.jsonl")
    assert f"this is {KINDS[kind].title}" in error


@pytest.mark.parametrize("kind", ["judgments", "tuples", "benchmark", "csts", "dialogue-table"])
def test_bws_make_tuples_names_what_is_no_list_of_items(folder, kind):
    assert f"this is {KINDS[kind].title}" in problems(make_tuples, named(kind), "-k", "2")


def test_many_lines_that_are_not_json_are_one_problem(folder):
    (folder / "s.jsonl").write_text("item,score\n" + "a,1\n" * 80)
    for command, more in ((validate, []), (make_tuples, ["-k", "2"])):
        (line,) = problems(command, "s.jsonl", *more).splitlines()
        assert line == ("s.jsonl: this is a scores file (CSV); giccs-build --scores reads it")


def test_a_benchmark_that_lacks_a_key_is_no_other_kind_of_file(folder):
    (folder / "b.jsonl").write_text(
        "".join(
            json.dumps({k: v for k, v in ITEM.items() if k != "utterance"}) + "\n" for _ in "ab"
        )
    )
    error = problems(validate, "b.jsonl")
    assert "b.jsonl:1: utterance is missing" in error
    assert "this is" not in error
