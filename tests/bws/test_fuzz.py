"""Whatever a file holds, a command ends with its work done or with exit code 2 and a line a problem."""

import gzip
import random

import pytest
from click.testing import CliRunner

from bws import cli
from bws.files import format_names

LONG = 1_000_000
GOOD = {
    "items": b"a\nb\nc\nd\n",
    "items.csv": b"item,group\na,d\nb,d\nc,d\nd,d\n",
    "d.jsonl": b'{"dialogue_id": "d", "candidates": [{"utterance_id": "a", "intended": 1}, '
    b'{"utterance_id": "b", "intended": 2}, {"utterance_id": "c", "intended": 5}]}\n',
    "tuples.csv": b"tuple_id,group,item1,item2,item3\nt1,d,a,b,c\nt2,d,a,c,b\n",
    "scores.csv": b"item,group,score\na,d,0.5\nb,d,0\nc,d,-1\n",
    "judgments.csv": b"tuple_id,group,item1,item2,item3,best,worst,annotator,shown\n"
    b't1,d,a,"b",c,a,c,w1,a;b;c\nt1,d,a,b,c,a,b,w2,c;b;a\nt2,d,a,c,b,c,a,w1,a;c;b\n',
    "long.csv": b"id,block,item,value\nw,1,a,1\nw,1,b,-1\nw,1,c,0\n",
    "batch.csv": b"WorkerId,Input.item1,Input.item2,Answer.best,Answer.worst\nw,a,b,a,b\n",
    "pairs.csv": b"p1,p2,Best,Worst\n\"['x', 'y']\",\"['z', 'u']\",1,2\n",
    "user_state.json": b'{"user_id": "u", "instance_id_to_label_to_value": {"t": {"s": {"best": "A", '
    b'"worst": "B"}}}, "_bws_items": [{"source_id": "a", "position": "A"}]}',
}
JUDGMENTS = ("judgments.csv", "long.csv", "batch.csv", "pairs.csv", "user_state.json")
CALLS = [
    *(("make_tuples", ["{}", "-k", "2"], name) for name in ("items", "items.csv", "d.jsonl")),
    ("make_tuples", ["items.csv", "-k", "3", "--extend", "{}"], "tuples.csv"),
    ("make_tuples", ["items", "-k", "2", "--keep-apart", "{}"], "items.csv"),
    ("simulate", ["{}", "--truth", "d.jsonl"], "tuples.csv"),
    ("simulate", ["tuples.csv", "--truth", "{}"], "scores.csv"),
    ("simulate", ["tuples.csv", "--truth", "{}"], "d.jsonl"),
    *(("score", ["{}"], name) for name in JUDGMENTS),
    *(("score", ["{}", "--on-invalid", "skip"], name) for name in JUDGMENTS),
    ("reliability", ["{}", "--trials", "2"], "judgments.csv"),
    ("agreement", ["{}", "--annotators"], "judgments.csv"),
    ("agreement", ["judgments.csv", "--metadata", "{}", "--by", "n_candidates"], "d.jsonl"),
    ("agreement", ["judgments.csv", "--metadata", "{}", "--by", "tuple_id"], "tuples.csv"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in GOOD.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def ends_well(command, arguments, *, code=None):
    """Run; the command must end by itself, with no traceback, and with a line a problem."""
    result = CliRunner().invoke(getattr(cli, command), arguments)
    place = f"{command} {arguments}: {result.output[-500:]}"
    assert result.exit_code in (0, 2), place
    assert code is None or result.exit_code == code, place
    assert result.exception is None or isinstance(result.exception, SystemExit), place
    assert "Traceback" not in result.output
    assert max(map(len, result.output.splitlines()), default=0) < 100_000, "an endless line"
    return result


def broken(data, generator):
    """A damaged copy: cut, with bytes changed, with a piece put in twice, or with junk put in."""
    start, end = sorted(generator.randrange(len(data) + 1) for _ in range(2))
    junk = [
        b'"',
        b"\n",
        b",",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"{",
        b"[" * 2000,
        b"\r",
        "ü".encode(),
    ]
    return generator.choice(
        [
            data[:end],
            data[start:],
            data[:start] + bytes(generator.choices(range(256), k=3)) + data[start + 3 :],
            data[:end] + data[start:],
            data[:start] + generator.choice(junk) + data[start:],
            data[:start] + data[end:],
            data.replace(b",", b";"),
            data.upper(),
        ]
    )


def rare_above(few, many):
    """Parametrise with the numbers of the examples: few in every run, the others in make nightly."""
    rest = pytest.param(range(few, many), marks=pytest.mark.nightly)
    return pytest.mark.parametrize("numbers", [range(few), rest], ids=["few", "many"])


@pytest.mark.parametrize(("command", "arguments", "name"), CALLS)
def test_the_good_files_are_good(folder, command, arguments, name):
    result = ends_well(command, [a.format(name) for a in arguments])
    expected = 2 if name == "user_state.json" or "--keep-apart" in arguments else 0
    assert result.exit_code == expected, result.output


@pytest.mark.parametrize(("command", "arguments", "name"), CALLS)
@rare_above(5, 40)
def test_damaged_files(folder, command, arguments, name, numbers):
    generator = random.Random(f"{command} {arguments} {name} {numbers}")
    for number in numbers:
        file = f"{number}{name if '.' in name else '.txt'}"
        (folder / file).write_bytes(broken(GOOD[name], generator))
        ends_well(command, [a.format(file) for a in arguments])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".json", ".tsv", ".txt"])
@rare_above(5, 30)
def test_random_bytes(folder, suffix, numbers):
    generator = random.Random(f"{suffix} {numbers}")
    for number in numbers:
        file = f"{number}{suffix}"
        (folder / file).write_bytes(generator.randbytes(generator.choice([0, 1, 10, 1000])))
        ends_well("score", [file], code=2)
        ends_well("simulate", [file, "--truth", "d.jsonl"], code=2)
        ends_well("simulate", ["tuples.csv", "--truth", file], code=2)
        ends_well("agreement", ["judgments.csv", "--metadata", file, "--by", "x"], code=2)


@pytest.mark.parametrize(
    "step", [11, pytest.param(1, marks=pytest.mark.nightly)], ids=["some lengths", "all lengths"]
)
def test_a_gzip_file_that_is_cut(folder, step):
    packed = gzip.compress(GOOD["judgments.csv"])
    for length in range(0, len(packed), step):
        (folder / "j.csv.gz").write_bytes(packed[:length])
        assert "gzip" in ends_well("score", ["j.csv.gz"], code=2).output or length == 0


HUGE = [
    b",".join(b"item%d" % n for n in range(1, LONG)) + b",best,worst\n",
    b"," * LONG,
    b'"a",' * LONG + b"\n",
    b"\t".join([b"x"] * LONG),
    b"item1,item2,best,worst\n" + b"x" * LONG + b",b,b," + b"x" * LONG + b"\n",
    b'item1,item2,best,worst\n"' + b"x" * LONG + b'",b,b,' + b"x" * LONG + b"\n",
    b"item1,item2,best,worst," + b"x" * LONG + b"\na,b,a,b\n",
    b"item1,item2,best,worst\na,b,a,b" + b"," * LONG + b"\n",
    b"tuple_id,item1,item2,best,worst\n" + b"t" * LONG + b",a,b,a,b\n",
    b"group,item1,item2,best,worst\n" + "ü".encode() * LONG + b",a,b,a,b\n",
    b"p1,p2,Best,Worst\n" + b"[" * LONG + b",b,1,2\n",
    b'{"dialogue_id": ' + b"[" * LONG,
    b"\n" * LONG,
    b'"' + b"\n" * LONG,
]


HUGE_CALLS = [
    ("score", ["x.csv"]),
    ("score", ["x.json"]),
    ("simulate", ["x.csv", "--truth", "d.jsonl"]),
    ("make_tuples", ["x.jsonl", "-k", "2"]),
    ("make_tuples", ["x.csv", "-k", "2"]),
]


def each_file_and_each_call():
    """Every pair; in every run each file with one call, and each call with two files or three."""
    for number, data in enumerate(HUGE):
        for place, (command, arguments) in enumerate(HUGE_CALLS):
            marks = () if place == number % len(HUGE_CALLS) else pytest.mark.nightly
            name = f"{command}-{arguments[0]}-{number}"
            yield pytest.param(command, arguments, data, marks=marks, id=name)


@pytest.mark.parametrize(("command", "arguments", "data"), list(each_file_and_each_call()))
def test_huge_headers_and_ids(folder, command, arguments, data):
    (folder / arguments[0]).write_bytes(data)
    # a long column that nobody asks for is no fault
    code = 0 if data is HUGE[6] and arguments == ["score", "x.csv"] else 2
    ends_well(command, arguments, code=code)


def test_mixed_tuple_sizes(folder):
    header = "item1,item2,item3,best,worst\n"
    for rows in ("a,b,c,a,b\na,b,a,b\n", "a,b,c,a,b\na,b,,a,b\n", "a,b,c,a,b\na,b,c,d,a,b\n"):
        (folder / "x.csv").write_text(header + rows)
        assert "x.csv:3: " in ends_well("score", ["x.csv"], code=2).output


@pytest.mark.parametrize("form", format_names()[1:])
def test_every_format_refuses_a_file_of_another(folder, form):
    (folder / "x.csv").write_text("a,b\n1,2\n")
    result = ends_well("score", ["x.csv", "--from", form], code=2)
    assert result.output.startswith("x.csv: ")
