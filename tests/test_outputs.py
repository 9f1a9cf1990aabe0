"""No output replaces an input, and nothing replaces what people have entered."""

import os
import re
import shlex
from itertools import product
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.options import FilePath
from bws.base.problems import InputError
from bws.design import make_tuples
from bws.files import read_judgments, write_judgments, write_tuples
from bws.simulation import simulate
from tests.test_option_values import all_commands, types_of

ROOT = Path(__file__).parents[1]
TEXTS = {
    "ADDRESS", "ADDRESSES", "AMOUNT", "CATEGORY", "CODE", "COL", "COL,COL", "COLUMN", "COLUMN,...",
    "DATE", "HOST:PORT", "ID", "ITEM[=best|=worst]", "LINK...", "METRIC=VALUE",
    "MODEL", "MODEL=NAME", "N,N,...", "NAME",
    "NAME,...", "OWNER/NAME", "PART=NAME,...", "REV", "ROLE=COLUMN", "SCORE", "SET", "TAG",
    "TASK[:METRIC[:GROUP]]", "TEXT", "TEXT1,TEXT2,SCORE", "URL", "WHERE", "[HIT_ID]...",
    "[WORKER]...", "auto|N|A..B",
}  # fmt: skip
"""Placeholders of texts that are not files."""
NAMES = {"worker", "text", "name", "--host", "--message", "--feedback"}
"""Texts without a placeholder that are not files."""
COMMANDS = [(words, command) for words, command in all_commands() if command.params]


def is_file(param):
    return isinstance(param.type, FilePath)


def test_every_option_with_a_file_is_declared():
    """A text option is a file of a declared kind, or has a placeholder that says what else it is."""
    undeclared = [
        (" ".join(words), param.opts[0], param.metavar)
        for words, command in COMMANDS
        for param in command.params
        if not is_file(param)
        and any(type(kind) is click.types.StringParamType for kind in types_of(param))
        and not (param.metavar in TEXTS or (param.metavar is None and param.opts[0] in NAMES))
    ]
    assert undeclared == []
    assert not any(
        isinstance(kind, click.Path | click.File)
        for _, command in COMMANDS
        for param in command.params
        for kind in types_of(param)
    )


def value_of(param, path):
    """Return a valid value of a parameter: that of a file is `path`, in the form that the option has."""
    if is_file(param):
        return f"differences={path}" if param.metavar == "NAME=FILE" else path
    if isinstance(param.type, click.Choice):
        return param.type.choices[0]
    return str(param.type.min) if hasattr(param.type, "min") else "1"


def call(command, chosen):
    """Return the arguments of a call with the values `chosen`, and all that the command requires."""
    arguments, positional = [], []
    for number, param in enumerate(command.params):
        value = chosen.get(param.name)
        if value is None and (param.required or getattr(param, "nargs", 1) == -1):
            value = value_of(param, f"other-{number}")
        if value is None or value == "":
            continue
        if isinstance(param, click.Argument):
            positional.append(value)
        else:
            arguments += [param.opts[0], value]
    return [*arguments, "--", *positional]


def pairs():
    """Yield a command, and two of its files of which one is written and the other is read or written."""
    for words, command in COMMANDS:
        files = [param for param in command.params if is_file(param) and param.expose_value]
        for written, other in product(files, repeat=2):
            roles = written.type.role, other.type.role
            if written is not other and (
                roles[0] == "output"
                or roles == ("update", "input")
                or (roles[0] == "folder" and roles[1] != "output")
            ):
                yield (
                    f"{' '.join(words)} {written.opts[0]} {other.opts[0]}",
                    command,
                    written,
                    other,
                )


PAIRS = list(pairs())


def test_there_are_pairs_to_look_at():
    assert len(PAIRS) > 150


def replaces(folder, command, written, other):
    """Return whether a call with one name for both files is no refusal, or changes a file."""
    Path("same").write_bytes(b"precious\n")
    same = "same"
    if written.type.role == "folder":
        Path("folder").mkdir()
        Path("same").rename("folder/same")
        same = "folder"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    chosen = {param.name: value_of(param, same) for param in (written, other)}
    result = CliRunner().invoke(command, call(command, chosen))
    kind = "folder" if written.type.role == "folder" else "file"
    if (
        result.exit_code != 2
        or f"are the same {kind}" not in result.stderr
        or same not in result.stderr
    ):
        return result.output or repr(result.exception)
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return "" if after == before else f"{before} became {after}"


def test_no_command_replaces_one_of_its_files(tmp_path, monkeypatch):
    problems = []
    for number, (name, *pair) in enumerate(PAIRS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        if problem := replaces(folder, *pair):
            problems.append(f"{name}: {problem}")
    assert problems == []


# Names of the same file


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return a folder with tuples.csv, truth.csv, simulated.csv and people.csv; it is the current folder."""
    monkeypatch.chdir(tmp_path)
    tuples = make_tuples(list("abcdefgh"), 4, count=8, seed=1)
    write_tuples(tuples, "tuples.csv")
    truth = "".join(f"{item},{number / 8}\n" for number, item in enumerate("abcdefgh"))
    Path("truth.csv").write_text(f"item,score\n{truth}")
    write_judgments(simulate(tuples, np.arange(8) / 8, 3), "simulated.csv")
    text = Path("simulated.csv").read_text()
    Path("people.csv").write_text(text.replace("simulated-", "worker"))
    return tmp_path


@pytest.fixture
def run(commands):
    """Return a function that runs `giccs` in a new process, and returns its standard error."""

    def run(*arguments, code=0, **more):
        done = commands.run("giccs", *arguments, **more)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stderr

    return run


@pytest.mark.parametrize(
    "name", ["people.csv", "./x/../people.csv", "link.csv", "hard.csv", "absolute"]
)
def test_links_and_relative_paths_name_the_same_file(study, run, name):
    Path("x").mkdir()
    os.symlink("people.csv", "link.csv")
    os.link("people.csv", "hard.csv")
    output = str(study / "people.csv") if name == "absolute" else name
    before = Path("people.csv").read_bytes()
    said = run("score", "people.csv", "-o", output, code=2)
    other = " (people.csv)" if output != "people.csv" else ""
    message = f"{output}: -o and JUDGMENTS{other} are the same file; expected another file for -o"
    assert said == f"{message}\n"
    assert Path("people.csv").read_bytes() == before


def test_standard_input_and_output_are_files_too(study, run):
    before = Path("people.csv").read_bytes()
    with open("people.csv") as file:
        assert "people.csv: -o and JUDGMENTS (-)" in run(
            "score", "-", "-o", "people.csv", code=2, stdin=file
        )
    with open("people.csv", "a") as file:
        run("score", "people.csv", stdout=file, code=2)
    assert Path("people.csv").read_bytes() == before


@pytest.mark.parametrize(
    "arguments", [["agreement", "people.csv"], ["reliability", "-"], ["agreement", "-", "--json"]]
)
def test_standard_output_is_an_output_of_every_command(study, run, arguments):
    before = Path("people.csv").read_bytes()
    with open("people.csv") as stdin, open("people.csv", "a") as stdout:
        said = run(*arguments, code=2, stdin=stdin, stdout=stdout)
    assert "standard output and JUDGMENTS" in said
    assert Path("people.csv").read_bytes() == before


def test_an_output_folder_is_of_one_output_alone(study, run):
    Path("results").mkdir()
    for folder in ("--lm-eval", "--mteb", "--every-eval-ever", "--eval-results"):
        said = run("report", "results", folder, "./results", code=2)
        assert f"./results: {folder} and RESULTS_FOLDER (results) are the same folder" in said
    said = run("report", "results", "--lm-eval", "new", "--mteb", "./new", code=2)
    assert "are the same folder; expected another folder for" in said
    assert not Path("new").exists()


def test_every_conflict_has_a_line(study, run):
    arguments = ["people.csv", "-o", "people.csv", "--soft-targets", "people.csv"]
    assert len(run("score", *arguments, code=2).splitlines()) == 3
    said = run("score", "people.csv", "-o", "new.csv", "--soft-targets", "./new.csv", code=2)
    assert "--soft-targets and -o" in said or "-o and --soft-targets" in said
    assert not Path("new.csv").exists()


def test_devices_and_missing_inputs_are_no_conflict(study, run):
    run("score", "people.csv", "-o", os.devnull, "--soft-targets", os.devnull)
    assert run("score", "missing.csv", "-o", "missing.csv", code=2).startswith(
        "missing.csv: no such file"
    )


# Files that settings name, and files in folders


def test_a_file_that_settings_name_is_an_input(study, run):
    run("init", "words", "--preset", "sentiment")
    texts = Path("words/texts.toml").read_bytes()
    run("design", "words/items.csv", "--item-column", "item", "-k", "4", "-o", "words.csv")
    arguments = [
        "words.csv",
        "--items",
        "words/items.csv",
        "--config",
        "words/hits.toml",
        "--no-browser",
    ]
    said = run("annotate", "preview", *arguments, "-o", "words/texts.toml", code=2)
    assert "texts.toml: is read by this command; expected another file for -o" in said
    assert Path("words/texts.toml").read_bytes() == texts
    run("annotate", "preview", *arguments, "-o", "page.html")
    run("annotate", "preview", *arguments, "-o", "page.html")  # an earlier output


def test_an_input_in_an_output_folder_is_not_replaced(study, run):
    run("init", "words", "--preset", "sentiment")
    arguments = ["--items", "words/items.csv", "--config", "words/hits.toml", "--to", "csv"]
    run("design", "words/items.csv", "--item-column", "item", "-k", "4", "-o", "words/tuples.csv")
    before = Path("words/tuples.csv").read_bytes()
    said = run("annotate", "export", "words/tuples.csv", *arguments, "-o", "words", code=2)
    assert "tuples.csv: is an input of this command, which an output would replace" in said
    assert Path("words/tuples.csv").read_bytes() == before
    run("annotate", "export", "words/tuples.csv", *arguments, "-o", "exported")
    run("annotate", "export", "words/tuples.csv", *arguments, "-o", "exported")
    table = Path("exported/tuples.csv").read_text().splitlines()
    header, row = (line.split(",") for line in table[:2])
    cells = dict(zip(header, row, strict=True))
    cells |= {"best": cells["item1"], "worst": cells["item2"], "annotator": "me"}
    Path("exported/tuples.csv").write_text(
        "\n".join([table[0], ",".join(cells.values()), *table[2:], ""])
    )
    said = run("annotate", "export", "words/tuples.csv", *arguments, "-o", "exported", code=2)
    assert "tuples.csv: contains 1 answers of people" in said


def test_a_result_in_a_folder_is_an_input_and_results_are_updated_in_place(study, run):
    run("eval", "baseline:chance", "--task", "pairwise-sts", "--limit", "3", "-o", "results")
    run(
        "eval",
        "baseline:chance",
        "--task",
        "pairwise-sts",
        "--limit",
        "3",
        "--force",
        "-o",
        "results",
    )
    (result,) = Path("results").glob("*.json")
    before = result.read_bytes()
    said = run("report", "results", "--figure", f"differences={result}", code=2)
    assert f"{result}: is read by this command; expected another file for --figure" in said
    assert result.read_bytes() == before


# What people have entered


def test_simulated_judgments_do_not_replace_those_of_people(study, run):
    before = Path("people.csv").read_bytes()
    arguments = ["simulate", "tuples.csv", "--truth", "truth.csv", "--annotators", "2", "-o"]
    said = run(*arguments, "people.csv", code=2)
    assert (
        said
        == "people.csv: contains 24 answers of people, which would be lost; expected another file\n"
    )
    assert Path("people.csv").read_bytes() == before
    run(*arguments, "simulated.csv")
    assert len(read_judgments("simulated.csv")) == 16
    run("score", "people.csv", "-o", "scores.csv")
    Path("damaged.csv").write_bytes(b"\xff\xfe\x00")
    for other in ("scores.csv", "damaged.csv"):
        said = run(*arguments, other, code=2)
        assert said.startswith(f"{other}: cannot be read as simulated judgments")
    for empty in ("", Path("simulated.csv").read_text().splitlines()[0] + "\n"):
        Path("new.csv").write_text(empty)
        run(*arguments, "new.csv")


@pytest.mark.parametrize("change", ["anonymous", "km", "one of them", "a wrong row"])
def test_judgments_that_do_not_show_that_they_are_simulated_are_people_s(study, change):
    judgments = read_judgments("people.csv")
    if change == "anonymous":
        unnamed = np.full(len(judgments), -1, dtype=judgments.annotator_of.dtype)
        from dataclasses import replace

        write_judgments(
            replace(judgments, annotator_of=unnamed, annotators=np.array([], object)), "old.csv"
        )
    elif change == "km":
        write_judgments(judgments, "old.csv", "km")
    elif change == "one of them":
        simulated = Path("simulated.csv").read_text()
        Path("old.csv").write_text(simulated.replace("simulated-3", "worker3"))
    else:
        text = Path("people.csv").read_text()
        Path("old.csv").write_text(f"{text}t1,,a,b,c,d,x,y,worker9,\n")
    before = Path("old.csv").read_bytes()
    with pytest.raises(InputError, match=r"old\.csv: contains [0-9]+ answers of people"):
        write_judgments(read_judgments("simulated.csv"), "old.csv")
    assert Path("old.csv").read_bytes() == before


@pytest.mark.parametrize("change", ["utf-16", "latin-1", "comment line", "headers", "a wrong row"])
def test_simulated_judgments_do_not_replace_what_may_be_people_s(study, change):
    text = Path("people.csv").read_text()
    if change == "headers":
        header, rows = "a,b,c,d,most,least\n", text.splitlines(keepends=True)[1:]
        text = header + "".join(row.split(",", 2)[2].rsplit(",", 2)[0] + "\n" for row in rows)
    elif change == "comment line":
        text = f"# exported\n{text}"
    elif change == "a wrong row":
        text = Path("simulated.csv").read_text() + "t1,,a,b,c,d,x,y,worker9,\n"
    encoding = change if change in ("utf-16", "latin-1") else "utf-8"
    Path("old.csv").write_bytes(text.replace("worker1", "wörker1").encode(encoding))
    before = Path("old.csv").read_bytes()
    count = 24 if change == "utf-16" else 1
    with pytest.raises(
        InputError, match=rf"old\.csv: (cannot be read|contains {count} answers of people)"
    ):
        write_judgments(read_judgments("simulated.csv"), "old.csv")
    assert Path("old.csv").read_bytes() == before


def test_batch_results_of_simulated_workers_are_replaced(tmp_path):
    from bws.files.answers_of_people import check_replaceable

    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,Answer.label,Answer.comment\n1,w-1,2,simulated\n")
    check_replaceable(path)
    path.write_text(path.read_text() + "1,w-2,2,\n")
    with pytest.raises(InputError, match="contains 1 answers of people"):
        check_replaceable(path)


def test_a_comment_shows_that_pseudonymous_judgments_are_simulated(study):
    """As from giccs annotate simulate, whose workers have pseudonyms in the collected judgments."""
    header, *rows = Path("people.csv").read_text().splitlines()
    commented = [f"{header},comment", *(f"{row},simulated" for row in rows)]
    Path("collected.csv").write_text("\n".join(commented) + "\n")
    collected = read_judgments("collected.csv")
    write_judgments(collected, "copy.csv")
    write_judgments(collected, "copy.csv")
    with pytest.raises(InputError, match="contains 24 answers of people"):
        write_judgments(collected, "people.csv")
    Path("more.csv").write_text(Path("copy.csv").read_text().replace("simulated", "I am not", 1))
    with pytest.raises(InputError, match="contains 1 answers of people"):
        write_judgments(collected, "more.csv")


def test_judgments_of_a_model_do_not_replace_those_of_people(study, run):
    text = Path("people.csv").read_text()
    Path("model.csv").write_text(
        re.sub("worker[0-9]", "model:m", text).replace("model:m", "model:m@1")
    )
    with pytest.raises(InputError, match="contains 24 answers of people"):
        write_judgments(read_judgments("model.csv", on_invalid="skip"), "people.csv")
    with pytest.raises(InputError, match="contains 24 answers of people"):
        write_judgments(read_judgments("simulated.csv"), "people.csv")
    write_judgments(read_judgments("people.csv"), "model.csv")
    arguments = [
        "tuples.csv",
        "--model",
        "no-such-model",
        "--data",
        "no-such-data",
        "-o",
        "people.csv",
    ]
    assert "contains 24 answers of people" in run("judge", *arguments, "--force", code=2)


def test_conditions_written_by_simulated_workers_do_not_replace_those_of_people(tmp_path):
    from mturk.kinds.sentence_pairs import write_rows

    path = tmp_path / "conditions.csv"
    simulated = [["1", "w-1", "A1", "2.0", "simulated"], ["2", "w-2", "A2", "2.0", "simulated"]]
    people = [*simulated[:1], ["2", "w-2", "A2", "2.0", ""]]
    for rows in (simulated, simulated, people, people):
        write_rows(["uid"], rows, path)
    with pytest.raises(InputError, match="contains 1 answers of people"):
        write_rows(["uid"], simulated, path)
    write_rows(["uid"], [], path)  # All answers were withdrawn.


def test_a_sheet_that_writers_fill_in_is_kept(study, run):
    run("data", "copy", "giccs-sample")
    arguments = ["build", "sheet", "giccs-sample/dialogues.jsonl", "-o", "sheet.csv"]
    run(*arguments)
    run(*arguments)  # a sheet without texts is replaced
    text = Path("sheet.csv").read_text("utf-8")
    Path("sheet.csv").write_text(text.replace(".,,", ".,A candidate.,", 2), "utf-8")
    before = Path("sheet.csv").read_bytes()
    said = run(*arguments, code=2)
    assert said.startswith("sheet.csv: contains 2 texts of writers, which would be lost")
    assert Path("sheet.csv").read_bytes() == before


# Examples


def outputs(text, words):
    """Return the values of -o in the commands of a text that contain the words."""
    commands = re.sub(r"\\\n[ >]*", " ", text).splitlines()
    return {
        shlex.split(line, comments=True)[-1]
        for line in commands
        if re.search(words, line) and re.search(r" -o [^ ]+$", line)
    }


PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "app" / "giccs_app" / "studies").rglob("*.md"),
]


def test_no_page_gives_one_name_to_simulated_and_to_collected_answers():
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert outputs(reference, "simulate tuples")
    assert outputs(reference, "collect")
    texts = {page: page.read_text("utf-8") for page in PAGES}
    assert len(texts) > 40
    both = {
        page: outputs(text, "simulate ") & outputs(text, "hits collect|annotate collect")
        for page, text in texts.items()
    }
    assert {page: names for page, names in both.items() if names} == {}


@pytest.mark.parametrize("kind", ["tuples", "items"])
def test_new_studies_have_two_files_of_judgments(kind):
    page = ROOT / "app" / "giccs_app" / "studies" / "templates" / kind / "README.md"
    text = page.read_text("utf-8")
    assert outputs(text, "giccs simulate") == {"simulated.csv"}
    assert outputs(text, "annotate collect") == {"judgments.csv"}
