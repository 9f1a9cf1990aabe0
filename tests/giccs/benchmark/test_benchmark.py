"""The benchmark format: what is read, what is refused with which line, what identifies it."""

import gzip
import json
import random

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import check_benchmark, read_benchmark, write_benchmark
from giccs.cli.validation import validate
from tests.nightly import others_nightly

from ..conftest import rows, write


def problems_of(tmp_path, lines):
    _, problems = check_benchmark(write(tmp_path / "b.jsonl", lines))
    return [f"{problem.line}: {problem.message}" for problem in problems]


def changed(**values):
    lines = list(rows(dialogues=2))
    lines[2] |= values
    return lines


def test_what_is_written_is_read_back(tmp_path, benchmark_file):
    benchmark = read_benchmark(benchmark_file)
    assert len(benchmark.items) == 30
    assert benchmark.items[0].n_turns == 5
    write_benchmark(benchmark.items, tmp_path / "again.jsonl.gz")
    again = read_benchmark(tmp_path / "again.jsonl.gz")
    assert again.items == benchmark.items
    assert (
        gzip.decompress((tmp_path / "again.jsonl.gz").read_bytes()) == benchmark_file.read_bytes()
    )


def test_fingerprint_sees_content_and_nothing_else(tmp_path, benchmark_file):
    lines = [json.loads(line) for line in benchmark_file.read_text("utf-8").splitlines()]
    known = read_benchmark(benchmark_file).fingerprint
    spaced = tmp_path / "spaced.jsonl"
    spaced.write_text(
        "\n\n".join(json.dumps(dict(reversed(line.items())), separators=(" , ", " : "))
                    for line in reversed(lines)), "utf-8",
    )  # fmt: skip
    assert read_benchmark(spaced).fingerprint == known
    for change in ({"score": 0.987}, {"utterance": "anders"}, {"domain": "anders"}):
        edited = [line | change if line["dialogue_id"] == "d0" and "domain" in change else line
                  for line in lines]  # fmt: skip
        edited[0] = lines[0] | change
        assert read_benchmark(write(tmp_path / "e.jsonl", edited)).fingerprint != known


def test_the_source_s_own_label_is_kept_where_there_is_one(tmp_path, benchmark_file):
    known = read_benchmark(benchmark_file)
    labelled = list(rows(dialogues=2))
    for line in labelled:
        line["original_domain"] = "phone"
    benchmark = read_benchmark(write(tmp_path / "l.jsonl", labelled))
    assert {item.original_domain for item in benchmark.items} == {"phone"}
    assert benchmark.warnings == ()
    write_benchmark(benchmark.items, tmp_path / "again.jsonl")
    assert read_benchmark(tmp_path / "again.jsonl").fingerprint == benchmark.fingerprint
    plain = read_benchmark(write(tmp_path / "p.jsonl", rows(dialogues=2)))
    assert plain.fingerprint != benchmark.fingerprint
    write_benchmark(known.items, tmp_path / "k.jsonl")
    assert "original_domain" not in (tmp_path / "k.jsonl").read_text("utf-8")


def test_fingerprints_of_earlier_versions_stand():
    assert read_benchmark("giccs-sample").fingerprint == (
        "39a74eba180a554ac787e612cf5f3c676f2f7810ad88a702b63e8d2befaa10a8"
    )
    assert read_benchmark("giccs-sample-en").fingerprint == (
        "c13c0ecd103ba388b50b920412e4aeb3582203110d75e5254bd6da65fffe65a5"
    )


def test_items_of_a_dialogue_share_the_source_s_label(tmp_path):
    (message,) = problems_of(tmp_path, changed(original_domain="phone"))
    assert message.startswith(
        "3: turns, source, domain or language differ from those of dialogue d0 in line 1"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 1.5}, "3: score is 1.5; expected a number from 0 to 1"),
        ({"score": float("nan")}, "3: score is NaN; expected a number from 0 to 1"),
        ({"score": "0.5"}, "3: score is '0.5'; expected a number from 0 to 1"),
        ({"score": True}, "3: score is true; expected a number from 0 to 1"),
        ({"score": None}, "3: score is missing"),
        ({"domain": None}, "3: domain is missing"),
        ({"utterance": "  "}, "3: utterance is empty; expected text"),
        ({"utterance_id": 7.5}, "3: utterance_id is 7.5; it must be a string"),
        ({"n_turns": 4}, "3: n_turns is 4, but there are 5 turns"),
        ({"turns": "Hallo"}, "3: turns is 'Hallo'; expected a list of objects"),
    ],
)
def test_a_wrong_field_is_told_with_its_line(tmp_path, change, message):
    assert problems_of(tmp_path, changed(**change)) == [message]


def test_one_turn_is_not_a_dialogue(tmp_path):
    turn = [{"speaker": "user", "text": "Hallo"}]
    result = problems_of(tmp_path, changed(turns=turn, n_turns=1, dialogue_id="own"))
    assert result == ["3: there is one turn; expected two or more, the last one is the target"]


def test_all_problems_of_a_file_are_reported_together(tmp_path):
    lines = list(rows(dialogues=2))
    lines[1]["item_id"] = lines[0]["item_id"]
    lines[3]["utterance"] = lines[0]["utterance"]
    lines[4]["source"] = "elsewhere"
    lines[7] = {"item_id": "x"}
    path = write(tmp_path / "b.jsonl", lines)
    with pytest.raises(InputError) as caught:
        read_benchmark(path)
    text = str(caught.value)
    # line 8 lacks seven other fields; the number of turns is derived
    assert len(caught.value.problems) == 7 + 3
    assert (
        f"{path}:2: repeats the item_id {lines[0]['item_id']!r} of line 1; each must be unique"
        in text
    )
    repeated = f"'d0', {lines[0]['utterance']!r}"
    assert f"{path}:4: repeats the utterance in its dialogue {repeated} of line 1" in text
    assert (
        f"{path}:5: turns, source, domain or language differ from those of dialogue d0 in line 1"
        in text
    )


def test_unknown_keys_are_a_warning(tmp_path):
    benchmark = read_benchmark(write(tmp_path / "b.jsonl", changed(note="x", by="y")))
    assert [str(w).split(":", 1)[1] for w in benchmark.warnings] == [
        "3: unknown keys are ignored: by, note"
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"item_id": "a", "dial', "1: not a JSON object ("),
        (b"\n[1, 2]\n", "2: not a JSON object (it is [1, 2])"),
        (b"", "no items"),
        (b'{"item_id": "\xff"}', "1: byte 0xff is not UTF-8"),
        (b"\x1f\x8b" + b"0" * 20, "byte 0x8b is not UTF-8"),
    ],
)
def test_a_file_that_is_no_benchmark(tmp_path, content, message):
    path = tmp_path / "b.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"b\.jsonl") as caught:
        read_benchmark(path)
    assert message in str(caught.value)


def test_missing_and_mistaken_places(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file"):
        read_benchmark(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match=r"contains 0 \.jsonl files and neither the GiCCS release"):
        read_benchmark(tmp_path)
    (tmp_path / "half.jsonl.gz").write_bytes(gzip.compress(b"x" * 999)[:-9])
    with pytest.raises(InputError, match="is not a complete gzip file"):
        read_benchmark(tmp_path / "half.jsonl.gz")


def test_a_byte_order_mark_and_line_separators_do_no_harm(tmp_path):
    lines = changed(utterance="eins\u2028zwei")
    path = write(tmp_path / "b.jsonl", lines)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_benchmark(path).items[2].utterance == "eins\u2028zwei"


def test_limit_takes_whole_dialogues(benchmark_file):
    first = read_benchmark(benchmark_file).first(2)
    assert first.dialogue_ids == ("d0", "d1")
    assert len(first.items) == 10


@pytest.mark.parametrize("seed", others_nightly(range(40), *range(8)))
def test_damaged_files_give_problems_and_never_a_traceback(tmp_path, benchmark_file, seed):
    """Bytes of a good file are replaced, dropped or doubled, or the file is noise."""
    draw = random.Random(seed)
    data = bytearray(benchmark_file.read_bytes())
    for _ in range(draw.randint(1, 30)):
        at = draw.randrange(len(data))
        match draw.randrange(4):
            case 0:
                data[at] = draw.randrange(256)
            case 1:
                del data[at : at + draw.randint(1, 50)]
            case 2:
                data[at:at] = draw.choice(
                    [b'"', b"\\ud800", b"[" * 2000, b"\n", b"9" * 5000, b"NaN"]
                )
            case 3:
                data = data[:at] or bytearray(draw.randbytes(100))
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(bytes(data))
    # what cannot be read at all (bytes that are no text) is raised, the rest returned
    unreadable = False
    try:
        benchmark, problems = check_benchmark(path)
    except InputError:
        unreadable = True
    assert unreadable or all(problem.message for problem in problems)
    assert unreadable or len(benchmark.fingerprint) == 64


def rewritten(tmp_path, **changes):
    """Two dialogues of two items each; `changes` maps a key to the four values."""
    rows = [
        {
            "item_id": f"i{n}", "dialogue_id": f"d{n // 2}", "source": "s", "domain": "x", "n_turns": 2,
            "turns": [{"speaker": "", "text": "Hi."}, {"speaker": "", "text": "Which  film?"}],
            "utterance_id": f"u{n}", "utterance": f"Film {n}?", "score": n / 4,
        }
        for n in range(4)
    ]  # fmt: skip
    for key, values in changes.items():
        for row, value in zip(rows, values, strict=True):
            row[key] = value
    path = tmp_path / "b.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_id": ["über", "x", "u\u0308ber", "y"]},
         "b.jsonl:3: repeats the item_id 'u\u0308ber' of line 1; each must be unique (they differ only in"),
        ({"utterance_id": ["ü", "u\u0308", "a", "b"]},
         "b.jsonl:2: repeats the utterance_id in its dialogue 'd0', 'u\u0308' of line 1"),
        ({"dialogue_id": ["ä", "ä", "a\u0308", "a\u0308"]},
         "b.jsonl:3: repeats the dialogue_id 'a\u0308' of line 1; each must be unique (they differ only in"),
    ],
)  # fmt: skip
def test_ids_that_differ_only_in_unicode_normalisation_are_an_error(tmp_path, changes, message):
    path = rewritten(tmp_path, **changes)
    _, problems = check_benchmark(path)
    assert [str(problem).startswith(f"{tmp_path}/{message}") for problem in problems] == [True]


def test_equal_scores_and_the_target_as_candidate_are_warnings(tmp_path):
    path = rewritten(tmp_path, score=[0.5] * 4, utterance=["Which film? ", "a", "which film?", "b"])
    result = CliRunner().invoke(validate, [str(path), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["warnings"] == [
        f"{path}: all 4 scores are 0.5; correlations are undefined",
        f"{path}:1: utterance u0 is the target utterance itself",
        f"{path}:3: dialogue 'd1' has the turns of dialogue 'd0' in line 1, and 0 of its candidates; "
        "analyses count both as independent",
    ]
    assert read_benchmark("giccs-sample").warnings == ()
