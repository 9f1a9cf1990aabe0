"""Questions from conditions, answers that survive whatever ends the program, and the way on to errors."""

import csv
import io
import json
import signal
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import giccs.models
from bws.base.problems import InputError
from bws.base.text import write_atomic
from giccs.csts.answer_generation import (
    NO_ANSWER,
    AnsweredRow,
    AnswerGenerator,
    answered_rows,
    answers_csv,
    cleaned,
    parse_outputs,
    question,
)
from giccs.csts.cli import main
from giccs.csts.data import Instance, read_csts
from giccs.csts.errors.answers import read_answers
from giccs.csts.task_data import read_task_data
from giccs.journal import Journal

from .tabled import Tabled, TabledChat
from .test_data import GOOD, write

QUESTIONS = {
    "The color of the dogs.": "What is the color of the dogs?",
    "the hobby": "What is the hobby?",
    "Room type": "What is room type?",
    " The   age\nof the child . ": "What is the age of the child?",
    "The U.S. state.": "What is the u.s. state?",
    "What people do...": "What is what people do..?",  # one full stop
    "": "",
    " . ": "",
}
WRITTEN = {
    "red": "red",
    " Two  dogs\n": "Two dogs",
    "\n\n A man\nSentence: Another": "A man",
    "a\tb\r\nc": "a b",
    "": NO_ANSWER,
    " \n\t\n": NO_ANSWER,
    "(no answer)": NO_ANSWER,
    "\x00\x1f\n\x00 red\x7f kite\x00": "red kite",
    "Größe: 5 % — “klein”": "Größe: 5 % — “klein”",
}


def of_prompt(prompt):
    """Write what stands in the prompt: its sentence, and the question."""
    lines = prompt.splitlines()
    assert len(lines) == 4
    return f"{lines[2].removeprefix('Question: ')} {lines[1].removeprefix('Sentence: ')}\nmore"


@pytest.fixture
def kites(tmp_path):
    lines = [GOOD[0], GOOD[1], "A cat.,A dog.,The animal.,2", "A cat.,A dog.,The pet.,3"]
    return write(tmp_path / "kites.csv", *lines)


@pytest.fixture
def opened(monkeypatch):
    """Let every name open the stand-in that a test made."""
    result = {}
    monkeypatch.setattr(giccs.models, "open_model", lambda name, options=None: result["model"])

    def use(model):
        result["model"] = model
        return model

    return use


def call(*arguments):
    return CliRunner().invoke(main, ["answers", *map(str, arguments)])


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


# questions and answers


@pytest.mark.parametrize(("condition", "asked"), QUESTIONS.items())
def test_a_condition_becomes_a_question(condition, asked):
    assert question(condition) == asked


@pytest.mark.parametrize(("written", "answer"), WRITTEN.items())
def test_an_answer_is_the_first_line_that_has_text(written, answer):
    assert cleaned(written) == answer


def test_each_sentence_is_asked_about_by_itself(kites, tmp_path):
    dataset = read_csts(kites)
    rows = dataset.instances
    model = Tabled(of_prompt)
    asking = AnswerGenerator(model)
    journal = Journal(tmp_path / "journal", asking.signature(dataset), parse_outputs)
    assert asking.ask(rows, journal) == 4
    assert len(model.asked) == 8
    assert model.max_tokens == [20]
    assert answers_csv(answered_rows(rows, journal)).splitlines()[:3] == [
        "uid,label,answer1,answer2,condition",
        "0,5,What is the color of the object? A red kite flies over the beach.,"
        "What is the color of the object? A red bus stops at the corner.,The color of the object.",
        "1,1,What is the type of object? A red kite flies over the beach.,"
        "What is the type of object? A red bus stops at the corner.,The type of object.",
    ]


def test_rows_with_a_label_are_asked_about_and_all_where_none_has_one(tmp_path, opened):
    opened(Tabled(of_prompt))
    some = write(tmp_path / "some.csv", "A.,B.,c,4", "A.,B.,d,-1", "E.,F.,g,", "E.,F.,h,1")
    done = call(some, "--model", "any", "-o", tmp_path / "a.csv", "--json")
    assert json.loads(done.stdout)["left_out"] == 2
    assert "warning" in done.stderr
    assert [one["uid"] for one in rows_of(tmp_path / "a.csv")] == ["0", "3"]
    for hidden in ("-1", ""):
        none = write(tmp_path / f"none{hidden}.csv", f"A.,B.,c,{hidden}", f"A.,B.,d,{hidden}")
        output = tmp_path / f"b{hidden}.csv"
        assert call(none, "--model", "any", "-o", output).exit_code == 0
        assert [(one["uid"], one["label"]) for one in rows_of(output)] == [("0", ""), ("1", "")]


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8")), st.text("a\"',;\r\n\t =+")), min_size=1
    )
)
@settings(max_examples=30)
def test_whatever_is_written_is_read_again_as_it_was_cleaned(written):
    result = [
        AnsweredRow(Instance(str(n), "a", "b", "c", 3, n), *map(cleaned, both))
        for n, both in enumerate(written)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        write_atomic(path, answers_csv(result))
        read = read_answers(path)
    assert [(one.answer1, one.answer2) for one in read] == [
        (one.answer1, one.answer2) for one in result
    ]


# the command


def test_answers_are_what_errors_and_tasks_read(kites, tmp_path, opened):
    opened(Tabled(of_prompt))
    output = tmp_path / "answers.csv"
    done = call(kites, "--model", "any", "-o", output, "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert {name: document[name] for name in ("rows", "asked", "kept", "no_answer", "left_out")} == {
        "rows": 4, "asked": 4, "kept": 0, "no_answer": 0, "left_out": 0,
    }  # fmt: skip
    assert document["signature"]["prompt"]["name"] == "question-1"
    pairs = read_answers(output)
    assert [(pair.uid, pair.label, pair.condition) for pair in pairs] == [
        ("0", 5, "The color of the object."), ("1", 1, "The type of object."),
        ("2", 2, "The animal."), ("3", 3, "The pet."),
    ]  # fmt: skip
    assert pairs[2].answer2 == "What is the animal? A dog."
    asked = read_task_data(kites, answers=output)
    assert (asked.answers["2"][1], asked.warnings) == ("What is the animal? A dog.", ())


def test_answers_of_a_whole_folder_serve_each_split(tmp_path, opened):
    opened(Tabled(of_prompt))
    output = tmp_path / "answers.csv"
    assert call("csts-sample", "--model", "any", "-o", output).exit_code == 0
    assert len(rows_of(output)) == 620
    for split in ("train", "test"):
        asked = read_task_data("csts-sample", split, output)
        assert asked.warnings == ()
        for instance in asked.instances:
            assert asked.answers[instance.uid][0].endswith(instance.sentence1)


def test_empty_answers_and_conditions_are_marked_and_counted(tmp_path, opened):
    data = write(tmp_path / "a.csv", "A.,B.,the color,4", "A.,B.,,1")
    model = opened(Tabled(lambda prompt: " \n" if "Sentence: A." in prompt else "blue"))
    done = call(data, "--model", "any", "-o", tmp_path / "out.csv", "--json")
    document = json.loads(done.stdout)
    assert (document["no_answer"], document["empty_condition"], document["asked"]) == (3, 1, 1)
    assert len(model.asked) == 2
    assert [(one["answer1"], one["answer2"]) for one in rows_of(tmp_path / "out.csv")] == [
        (NO_ANSWER, "blue"), (NO_ANSWER, NO_ANSWER),
    ]  # fmt: skip
    assert len(read_answers(tmp_path / "out.csv")) == 2
    assert (
        "1 conditions are empty" in call(data, "--model", "any", "-o", tmp_path / "out.csv").stdout
    )


def test_a_chat_template_and_the_length_reach_the_model(kites, tmp_path, opened):
    model = opened(TabledChat(lambda prompt: "x"))
    how = ["--model", "any", "-o", tmp_path / "a.csv", "--chat-template", "--max-tokens", 7]
    assert call(kites, *how).exit_code == 0
    assert model.max_tokens == [7]
    assert all(one.startswith("<user>Your task") for one in model.asked)
    assert all(one.endswith("Answer:<assistant>") for one in model.asked)


@pytest.mark.parametrize(("model", "more", "message"), [
    (object(), [], "any: does not generate text; answering requires a text generation model"),
    (Tabled(str), ["--chat-template"], "any: does not support chat templates here"),
])  # fmt: skip
def test_a_model_that_cannot_do_it_is_refused(kites, tmp_path, opened, model, more, message):
    opened(model)
    done = call(kites, "--model", "any", "-o", tmp_path / "a.csv", *more)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "a.csv.jsonl").exists()


def test_standard_output_cannot_be_gone_on_with(kites, opened):
    opened(Tabled(str))
    done = call(kites, "--model", "any", "-o", "-")
    assert (done.exit_code, "must name a file" in done.stderr) == (2, True)


# going on


class Stopped(Tabled):
    """Is ended by Ctrl-C, or an error, after a few calls."""

    def __init__(self, answer, calls, error=KeyboardInterrupt):
        super().__init__(answer)
        self._calls, self._error = calls, error

    def generate(self, prompts, max_tokens, progress=None):
        if len(self.max_tokens) == self._calls:
            raise self._error("stopped")
        return super().generate(prompts, max_tokens, progress)


def test_what_was_answered_before_ctrl_c_is_not_asked_again(tmp_path, opened):
    output = tmp_path / "answers.csv"
    how = ["csts-sample", "--split", "validation", "--model", "any", "-o", output]
    first = opened(Stopped(of_prompt, 2))
    done = call(*how)
    assert done.exit_code == 130
    assert (
        f"64 of 120 rows have answers in {output}.jsonl; repeat the command to resume"
        in done.stderr
    )
    assert not output.exists()
    second = opened(Tabled(of_prompt))
    done = call(*how, "--json")
    assert f"64 of 120 rows have answers in {output}.jsonl\n" in done.stderr
    document = json.loads(done.stdout)
    assert (document["asked"], document["kept"]) == (56, 64)
    assert len(first.asked + second.asked) == len(set(first.asked + second.asked)) == 240
    whole = tmp_path / "whole.csv"
    opened(Tabled(of_prompt))
    assert call(*how[:-1], whole).exit_code == 0
    assert whole.read_bytes() == output.read_bytes()
    third = opened(Tabled(of_prompt))
    assert json.loads(call(*how, "--json").stdout)["asked"] == 0
    assert third.asked == []


def test_a_served_model_is_asked_in_one_call_whose_cost_is_shown(tmp_path, opened):
    model = opened(Tabled(of_prompt))
    model.usage = lambda: "240 requests; 0.03 USD"
    how = ["csts-sample", "--split", "validation", "--model", "any", "-o", tmp_path / "a.csv"]
    assert json.loads(call(*how, "--json").stdout)["usage"] == "240 requests; 0.03 USD"
    assert len(model.max_tokens) == 1
    assert json.loads(call(*how, "--json").stdout)["usage"] is None  # nothing was asked


def test_an_error_of_the_model_loses_nothing_either(tmp_path, opened):
    opened(Stopped(of_prompt, 1, lambda text: OSError(5, text)))
    done = call("csts-sample", "--model", "any", "-o", tmp_path / "a.csv")
    assert done.exit_code == 1
    assert "32 of 620 rows have answers" in done.stderr


def test_a_limit_can_be_raised_and_lowered_again(kites, tmp_path, opened):
    output = tmp_path / "a.csv"
    how = [kites, "--model", "any", "-o", output]
    models = [opened(Tabled(of_prompt)) for _ in range(3)]
    for model, limit, rows in zip(models, ("1", "2", "1"), (2, 4, 2), strict=True):
        opened(model)
        assert call(*how, "--limit", limit).exit_code == 0
        assert len(rows_of(output)) == rows
    assert [len(model.asked) for model in models] == [4, 4, 0]


def test_a_journal_of_something_else_is_refused_until_forced(kites, tmp_path, opened):
    output = tmp_path / "a.csv"
    how = ["--model", "any", "-o", output]
    opened(Tabled(of_prompt))
    assert call(kites, *how).exit_code == 0
    before = output.read_bytes()
    done = call(kites, *how, "--max-tokens", 5)
    assert done.exit_code == 2
    assert "max_tokens was 20, is 5; choose another output, or use --force" in done.stderr
    other = write(tmp_path / "other.csv", GOOD[0], GOOD[1])
    assert "data was" in call(other, *how).stderr
    assert output.read_bytes() == before
    model = opened(Tabled(lambda prompt: "new"))
    assert call(kites, *how, "--max-tokens", 5, "--force").exit_code == 0
    assert len(model.asked) == 8
    assert rows_of(output)[0]["answer1"] == "new"


def test_other_labels_ask_nothing_again(kites, tmp_path, opened):
    how = ["--model", "any", "-o", tmp_path / "a.csv"]
    opened(Tabled(of_prompt))
    assert call(kites, *how).exit_code == 0
    kites.write_text(kites.read_text("utf-8").replace("The animal.,2", "The animal.,-1"), "utf-8")
    model = opened(Tabled(of_prompt))
    assert call(kites, *how).exit_code == 0
    assert model.asked == []
    assert [one["uid"] for one in rows_of(tmp_path / "a.csv")] == ["0", "1", "3"]


def test_answers_without_a_journal_are_not_written_over(kites, tmp_path, opened):
    output = tmp_path / "a.csv"
    output.write_text("of a colleague", "utf-8")
    opened(Tabled(of_prompt))
    done = call(kites, "--model", "any", "-o", output)
    assert (done.exit_code, "without its journal a.csv.jsonl" in done.stderr) == (2, True)
    assert output.read_text("utf-8") == "of a colleague"
    assert call(kites, "--model", "any", "-o", output, "--force").exit_code == 0


def test_a_line_that_was_being_written_is_dropped(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, {"model": "a"}, parse_outputs)
    journal.add([("0", ("red\n", "blaü")), ("1", ("", "x"))])
    whole = path.read_bytes()
    for cut in range(1, len(whole) - whole.rstrip(b"\n").rfind(b"\n") - 1):
        path.write_bytes(whole[:-cut])
        again = Journal(path, {"model": "a"}, parse_outputs)
        assert again.answers == {"0": ("red\n", "blaü")}
        again.add([("1", ("", "x"))])
        assert path.read_bytes() == whole
    assert Journal(path, {"model": "a"}, parse_outputs).answers == {
        "0": ("red\n", "blaü"),
        "1": ("", "x"),
    }


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON\n", b"[]\n", b"{}\n", b'{"signature": {}}\n{"uid": "1"}\n', b"\xff\n"],
)
def test_a_file_that_is_no_journal_is_refused(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a journal of answers"):
        Journal(path, {}, parse_outputs)
    assert path.read_bytes() == content


# real models, with random weights: the real code path


def test_a_real_model_that_is_killed_goes_on_and_its_answers_reach_errors(
    tiny_gpt, static_encoder, tmp_path, commands
):
    """SIGKILL after the first part; what the second call writes is what one call would have written."""
    pytest.importorskip("sklearn")
    code = (
        "import os, signal, sys\n"
        "from giccs.journal import Journal\n"
        "add = Journal.add\n"
        "def dying(self, written):\n"
        "    add(self, written)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Journal.add = dying\n"
        "from giccs.csts.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    how = ["answers", "csts-sample", "--split", "test", "--model", f"causal:{tiny_gpt}",
           "--limit", "20", "--max-tokens", "4", "--device", "cpu"]  # fmt: skip
    output = tmp_path / "answers.csv"
    killed = commands.run("-c", code, *how, "-o", output)
    assert killed.returncode == -signal.SIGKILL
    done = CliRunner().invoke(main, [*how, "-o", str(output), "--json"])
    assert done.exit_code == 0, done.stderr
    assert (json.loads(done.stdout)["kept"], json.loads(done.stdout)["asked"]) == (32, 8)
    whole = tmp_path / "whole.csv"
    CliRunner().invoke(main, [*how, "-o", str(whole)])
    assert output.read_bytes() == whole.read_bytes()
    result = CliRunner().invoke(
        main, ["errors", str(output), "--model", f"encoder:{static_encoder}", "--k", "3", "--json"]
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["instances"] == 40
