"""The road from transcripts to a benchmark by commands, on an invented corpus of the paper's size."""

import csv
import io
import json
import random
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.cli import make_tuples, score, simulate
from giccs.benchmark import check_benchmark, read_benchmark, write_benchmark
from giccs.benchmark.assemble import assemble, read_dialogues, write_dialogues
from giccs.benchmark.candidates import comparable_text
from giccs.cli.building import build
from giccs.cli.validation import validate
from giccs.preparation.selection import select
from giccs.preparation.selection.rules import SamplingRule, SelectionRules
from giccs.preparation.sheet import add_candidates, default_sheet_texts, make_sheet, read_sheet
from giccs.preparation.transcripts.importing import import_transcripts

DOMAINS = {
    "cinema": "find_cinema", "fax": "find_restaurant", "navigation": "find_navigation",
    "phone": "find_hotel", "tourist": "find_touristAttraction", "tv": "find_tvProgram",
}  # fmt: skip
RULES = """\
seed = 11
last = "any"
[[take]]
source = "CROWDSS"
dialogues = 24
start = "system"
[[take]]
source = "BAS SmartKom"
dialogues = 6
[relabel]
restaurant = "find_restaurant"
""" + "".join(f'{name} = "{label}"\n' for name, label in DOMAINS.items())


def call(command, *arguments, code=0):
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def crowdss(draw, dialogues=40):
    """A table of turns with acts; one in three dialogues begins with the user."""
    written = io.StringIO()
    writer = csv.writer(written, delimiter=";")
    writer.writerow(["Dialog", "Turn", "Sprecher", "Text", "Dialogakt"])
    for d in range(dialogues):
        begins = d % 3 == 0
        for t in range(draw.randint(6, 9)):
            speaker = "Nutzer" if (t + begins) % 2 else "System"
            writer.writerow(
                [f"r{d:02}", t + 1, speaker, f"Äußerung {t} zu Tisch {d}; „bitte“.", "inform"]
            )
    return written.getvalue()


def transliteration(draw, session):
    lines = ["; invented"]
    for t in range(draw.randint(3, 8)):
        head = f"{session}{'dw'[t % 2]}_{t + 1:03}_{('AAA', 'SMA')[t % 2]}:"
        lines.append(f'{head} <"ahm> ich m"ochte +/den/+ das ~Ziel{draw.randint(0, 10**6)}<Z> [PA]')
        lines.append(f" in <:<#Klicken> {session}:> seh'n <P> , #{t} .")
    return "\n".join(lines) + "\n"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """CROWDSS-like and SmartKom-like dialogues, imported: seven files of dialogues."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    (tmp_path / "crowdss.csv").write_text(crowdss(draw), "utf-8")
    call(build, "import", "crowdss.csv", "--from", "crowdss", "-o", "restaurant.jsonl")
    files = ["restaurant.jsonl"]
    for place, domain in enumerate(DOMAINS):
        sessions = [f"w{place}{n:02}_pk" for n in range(12)]
        for session in sessions:
            (tmp_path / f"{session}.trl").write_text(transliteration(draw, session), "ascii")
        names = [f"{session}.trl" for session in sessions]
        call(build, "import", *names, "--domain", domain, "-o", f"{domain}.jsonl")
        files.append(f"{domain}.jsonl")
    (tmp_path / "selection.toml").write_text(RULES, "utf-8")
    return files


def fill(path, text):
    """Do what writers do: put a text into every row."""
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    for row in rows:
        row["text"] = text(row)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_the_paper_s_corpus_from_transcripts_to_benchmark(corpus, tmp_path):
    done = call(build, "select", *corpus, "--config", "selection.toml", "-o", "selected.jsonl",
                "--log", "log.jsonl")  # fmt: skip
    assert "60 kept" in done.stderr
    selected = read_dialogues("selected.jsonl", candidates=False)
    cells = Counter((d.source, d.original_domain, d.domain, len(d.turns)) for d in selected)
    expected = {("CROWDSS", "restaurant", "find_restaurant", n): 12 for n in (3, 5)}
    expected |= {
        ("BAS SmartKom", name, label, n): 3 for name, label in DOMAINS.items() for n in (3, 5)
    }
    assert cells == expected
    assert all(d.turns[0].speaker == "system" for d in selected if d.source == "CROWDSS")
    assert "ich möchte das Ziel" in selected[-1].turns[0].text
    assert not any(mark in turn.text for d in selected for turn in d.turns for mark in '<>[]#~"+/')

    call(build, "sheet", "selected.jsonl", "-o", "writers.csv", "--bom")
    assert (tmp_path / "writers.csv").read_bytes().startswith(b"\xef\xbb\xbfdialogue_id,")
    rows = fill(tmp_path / "writers.csv", lambda r: f"Satz {r['level']} zu {r['dialogue_id']}")
    assert len(rows) == 300
    call(build, "candidates", "selected.jsonl", "--sheet", "writers.csv", "-o", "dialogues.jsonl")
    call(make_tuples, "dialogues.jsonl", "-k", 3, "--tuples", 10, "-o", "tuples.csv")
    call(simulate, "tuples.csv", "--truth", "dialogues.jsonl", "--annotators", 5, "-o", "j.csv")
    call(score, "j.csv", "--scale", "unit", "-o", "scores.csv")
    done = call(build, "--dialogues", "dialogues.jsonl", "--scores", "scores.csv", "--last-turn",
                "any", "-o", "benchmark.jsonl", "--log", "join.jsonl")  # fmt: skip
    assert done.stderr == "300 items of 60 dialogues\n"

    call(validate, "benchmark.jsonl")
    items = read_benchmark("benchmark.jsonl").items
    texts = {(d.dialogue_id, turn.text) for d in selected for turn in d.turns}
    assert {(i.dialogue_id, turn.text) for i in items for turn in i.turns} == texts
    assert {i.utterance for i in items} == {row["text"] for row in rows}
    assert {i.dialogue_id: i.original_domain for i in items} == {
        d.dialogue_id: d.original_domain for d in selected
    }
    joined = [
        json.loads(line) for line in (tmp_path / "join.jsonl").read_text("utf-8").splitlines()
    ]
    assert joined[0]["candidates"] == 5
    assert joined[1:] == [
        {"dialogue_id": d.dialogue_id, "decision": "joined", "items": 5} for d in selected
    ]


def test_the_log_tells_every_decision_and_can_be_made_again(corpus, tmp_path):
    for name in ("1", "2"):
        call(build, "select", *corpus, "--config", "selection.toml", "-o", f"s{name}.jsonl",
             "--log", f"log{name}.jsonl")  # fmt: skip
    first, second = ((tmp_path / f"log{name}.jsonl").read_bytes() for name in "12")
    assert first == second
    head, *lines = map(json.loads, first.decode().splitlines())
    assert head["seed"] == 11
    assert len(head["files"]["selection.toml"]) == 64
    there = [d.dialogue_id for file in corpus for d in read_dialogues(file, candidates=False)]
    assert {line["dialogue_id"] for line in lines} == set(there)
    decided = [line for line in lines if line["decision"] in ("kept", "left out")]
    assert [line["dialogue_id"] for line in decided] == there
    assert all(line["reason"] for line in decided if line["decision"] == "left out")
    by_id = {d.dialogue_id: d for file in corpus for d in read_dialogues(file, candidates=False)}
    for read_dialogue in read_dialogues("s1.jsonl", candidates=False):
        dropped = sum(
            line.get("turns", line.get("turns_dropped"))
            for line in lines
            if line["dialogue_id"] == read_dialogue.dialogue_id
            and line["decision"] in ("start dropped", "cut")
        )
        assert len(by_id[read_dialogue.dialogue_id].turns) - dropped == len(read_dialogue.turns)
    other = call(build, "select", *corpus, "--config", "selection.toml", "--seed", 12, "--json",
                 "-o", "s3.jsonl")  # fmt: skip
    document = json.loads(other.stdout)
    assert (document["seed"], document["decisions"]["kept"]) == (12, 60)
    assert sum(cell["dialogues"] for cell in document["cells"]) == 60
    assert (tmp_path / "s3.jsonl").read_bytes() != (tmp_path / "s1.jsonl").read_bytes()


def test_what_cannot_be_filled_is_an_error_and_nothing_is_written(corpus, tmp_path):
    (tmp_path / "selection.toml").write_text(RULES.replace("= 6", "= 60"), "utf-8")
    done = call(build, "select", *corpus, "--config", "selection.toml", "-o", "s.jsonl", code=2)
    assert done.stderr.count("are missing; 60 requested, 12 available") == 12
    assert done.stderr.startswith("selection.toml: BAS SmartKom / cinema: ")
    assert not (tmp_path / "s.jsonl").exists()


def test_import_says_what_it_did(corpus):
    done = call(build, "import", "w000_pk.trl", "w001_pk.trl", "-o", "-")
    assert len(done.stdout.splitlines()) == 2
    assert "2 files, 2 dialogues" in done.stderr
    assert "user: AAA\nsystem: SMA\nremoved: " in done.stderr
    result = json.loads(call(build, "import", "crowdss.csv", "--json", "-o", "x.jsonl").stdout)
    assert result["roles"] == {"Nutzer": "user", "System": "system"}
    assert result["counts"]["dialogues"] == 40
    assert result["warnings"] == [
        "crowdss.csv: columns of dialogue acts or labels ignored: Dialogakt (cells: 293)"
    ]
    assert result["unused"] == {"Dialogakt": 293}


def test_one_id_in_two_files_is_refused(corpus, tmp_path):
    done = call(build, "select", "tv.jsonl", "tv.jsonl", "-o", "s.jsonl", code=2)
    assert "tv.jsonl:1: repeats the dialogue_id 'w500_pk' of the same line" in done.stderr


def test_odd_dialogues_are_joined_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turns = [{"speaker": "user", "text": "Wann?"}, {"speaker": "system", "text": "Um neun."}]
    texts = [{"utterance_id": name, "text": name} for name in "abc"]
    row = {"dialogue_id": "d", "source": "", "domain": "", "turns": turns, "candidates": texts}
    (tmp_path / "d.jsonl").write_text(json.dumps(row), "utf-8")
    (tmp_path / "s.csv").write_text("item,group,score\na,d,0.5\nb,d,0.6\nc,d,0.4\n", "utf-8")
    done = call(build, "--dialogues", "d.jsonl", "--scores", "s.csv", "--last-turn", "user",
                "-o", "b.jsonl", "--log", "log.jsonl")  # fmt: skip
    assert done.stderr.splitlines() == [
        "warning: d.jsonl:1: dialogue d: has 3 candidates instead of 5",
        "warning: d.jsonl:1: dialogue d: ends with a turn by system instead of user",
        "warning: d.jsonl:1: dialogue d: has scores with a range of only 0.20; candidates should differ more",
        "3 items of 1 dialogues; 3 warnings",
    ]
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert [line["decision"] for line in lines] == ["settings", "joined", *["warned"] * 3]
    benchmark, problems = check_benchmark("b.jsonl")
    assert not problems
    assert len(benchmark.items) == 3
    three = ["--candidates", "3", "-o", "b.jsonl"]
    done = call(build, "--dialogues", "d.jsonl", "--scores", "s.csv", *three)
    assert "candidates instead" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "x.csv", "--columns", "words=a", "-o", "o"], "unknown column 'words=a' of a turn"),
        (["import", "x.csv", "--user", "A", "--system", "a", "-o", "o"], "must be either user or system"),
        (["import", "x.csv", "-o", "-", "--json"], "both write to standard output"),
        (["import", "nowhere.csv", "-o", "o"], "nowhere.csv: no such file"),
        (["import", "-", "-o", "o"], "<stdin>: standard input needs --format"),
        (["import", "lone.csv", "-o", "o"], "no dialogue with at least two turns"),
        (["sheet", "two.jsonl", "-o", "o"], "two.jsonl: the data state no language, and the sheet's texts"),
        (["sheet", "two.jsonl", "-o", "o", "--language", "fr"], "two.jsonl: the sheet has no texts in fr;"),
        (["sheet", "two.jsonl", "-o", "o", "--lang", "x"], "'x' is not a BCP 47 language tag"),
        (["select", "two.jsonl", "-o", "o"], "two.jsonl: no dialogue was selected; --log writes the reasons"),
        (["--dialogues", "two.jsonl", "--scores", "s.csv"], "two.jsonl:1: no candidates;"),
        ([], "Missing option '--dialogues'"),
        (
            ["slect"],
            "import, select, sheet, candidates; did you mean 'select'?",
        ),
    ],
)  # fmt: skip
def test_calls_that_are_wrong(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("dialogue,text\na,x\na,y\n", "utf-8")
    (tmp_path / "lone.csv").write_text("dialogue,text\na,x\n", "utf-8")
    (tmp_path / "s.csv").write_text("item,group,score\na,d,0.5\n", "utf-8")
    turns = [{"speaker": "", "text": "x"}] * 2
    row = {"dialogue_id": "d", "source": "", "domain": "", "turns": turns}
    (tmp_path / "two.jsonl").write_text(json.dumps(row), "utf-8")
    done = call(build, *arguments, code=2)
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "o").exists()


def test_commands_below_are_named_with_what_is_above():
    done = call(build, "--help")
    for name in ("import", "select", "sheet", "candidates"):
        assert f"\n  {name} " in done.stdout
        below = call(build, name, "--help").stdout
        assert f" {name} [OPTIONS]" in below
        assert f"giccs build {name}" in below.partition("Example:")[2]


# texts are trimmed on the way, a blank one is left out, and the five of a dialogue must differ
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=["Cs"]),
    min_size=1, max_size=20,
).map(str.strip).filter(comparable_text)  # fmt: skip


@given(st.data())
@settings(max_examples=50)
def test_every_text_comes_through_whatever_it_holds(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("through")
    turns = data.draw(st.lists(TEXTS, min_size=3, max_size=5))
    texts = data.draw(
        st.lists(
            TEXTS.filter(lambda text: comparable_text(text) != comparable_text(turns[2])),
            min_size=5,
            max_size=5,
            unique_by=comparable_text,
        )
    )
    (folder / "t.jsonl").write_text(json.dumps({"dialogue_id": "d", "turns": turns}), "utf-8")
    imported = import_transcripts([folder / "t.jsonl"]).dialogues
    write_dialogues(
        select(imported, SelectionRules(sampling=(SamplingRule(lengths=(3,)),))).dialogues,
        folder / "s.jsonl",
    )
    selected = read_dialogues(folder / "s.jsonl", candidates=False)
    (folder / "w.csv").write_bytes(make_sheet(selected, default_sheet_texts("de")).encode("utf-8"))
    fill(folder / "w.csv", lambda row: texts[int(row["level"]) - 1])
    (whole,), _ = add_candidates(selected, *read_sheet(folder / "w.csv"), 5, 0)
    scores = {
        ("d", candidate.utterance_id): candidate.intended / 5 for candidate in whole.candidates
    }
    write_benchmark(assemble([whole], scores), folder / "b.jsonl")
    items = read_benchmark(folder / "b.jsonl").items
    assert {tuple(turn.text for turn in item.turns) for item in items} == {tuple(turns[:3])}
    assert {item.score: item.utterance for item in items} == {
        level / 5: text for level, text in enumerate(texts, start=1)
    }


def test_scores_in_minus_one_to_one_are_mapped_on_request(tmp_path):
    candidates = [{"utterance_id": name, "text": name} for name in "abc"]
    turns = [{"speaker": name, "text": "Hello."} for name in ("system", "user")]
    dialogue = {"dialogue_id": "d", "source": "s", "domain": "x", "turns": turns}
    (tmp_path / "d.jsonl").write_text(json.dumps(dialogue | {"candidates": candidates}))
    arguments = ["--dialogues", tmp_path / "d.jsonl", "--scores", tmp_path / "s.csv"]
    arguments += ["-o", tmp_path / "b.jsonl"]

    def write(*scores):
        rows = (f"{name},d,{score}\n" for name, score in zip("abc", scores, strict=True))
        (tmp_path / "s.csv").write_text("item,group,score\n" + "".join(rows))

    write(-0.5, 0.1, 0.4)
    refused = call(build, *arguments, code=2).output
    assert "1 scores are outside [0, 1]; use giccs score --scale unit, or --signed" in refused
    call(build, *arguments, "--signed")
    assert [item.score for item in read_benchmark(tmp_path / "b.jsonl").items] == [0.25, 0.55, 0.7]
    write(0.5, 0.1, 0.4)
    assert "no score is below 0" in call(build, *arguments, "--signed", code=2).output
    write(-1.5, 0.1, 0.4)
    assert "1 scores are outside [-1, 1]" in call(build, *arguments, "--signed", code=2).output
