"""What the page on security promises and no other test holds: what code may not do, hostile files cannot.

The rules about code are read from its syntax trees, and each is shown to find what it forbids. Files
that want memory are read by processes of their own with a limit to it.
"""

import ast
import gzip
import io
import json
import os
import pty
import random
import re
import stat
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bws.base.commands import Console, command
from bws.base.problems import InputError, Problem
from bws.base.text import read_bytes
from bws.files import read_judgments
from giccs.benchmark import read_benchmark
from giccs.benchmark.parquet import count_rows, polars_errors_as_value_errors, read_table
from giccs.evaluation.interop import lm_eval, mteb
from giccs.evaluation.recipe import read_recipe
from giccs.measures.results import Result, Store
from giccs.models import ModelOptions
from giccs.models.modules import saved_model

ROOT = Path(__file__).parents[1]
PACKAGES = ("bws", "giccs", "mturk", "app")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MIB = 2**20

# Rules about code

UNPICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
SAFE_YAML = {"safe_load", "safe_dump", "YAMLError"}
RUN_TEXT = {"eval", "exec", "compile", "__import__"}
NEEDED = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
OPEN_SHELLS = {"os.system", "os.popen", "tempfile.mktemp", "ssl._create_unverified_context"}
PARSERS = {"json.load", "json.loads", "tomllib.load", "tomllib.loads", "yaml.safe_load"}
FROM_A_FOLDER = {"from_pretrained", "from_config", "SentenceTransformer", "CrossEncoder"}
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|BEGIN)\b")
MIXED = {
    "app/giccs_app/explorer/annotation/data.py": {"name"},  # application_id, user_version
    "giccs/models/served/cache.py": {"marks"},
    "mturk/service/store/database.py": {"int.from_bytes(b'giccs', 'big')"},
    "mturk/service/store/sqlite_file.py": {"change", "pragma"},  # an integer, and constants
    "mturk/study/ledger.py": {
        "_columns(Hit)", "_columns(Assignment, 'a.')", "_columns(Action)", "_placeholders(Assignment)",
        "names", "table", "pragma",
    },
}  # fmt: skip
"""What stands in SQL besides constants: question marks, and names of our own tables, columns and pragmas."""


@cache
def trees():
    return {path: ast.parse(path.read_text("utf-8")) for path in FILES}


@cache
def nodes(tree):
    return [*ast.walk(tree)]


@cache
def calls(tree):
    return [node for node in nodes(tree) if isinstance(node, ast.Call)]


def given(call):
    return {word.arg: word.value for word in call.keywords}


def imported(tree):
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def runs_what_it_reads(tree):
    """Yield what of a module would run code that stands in data, or start a shell."""
    yield from UNPICKLERS & {*imported(tree)}
    yield from unsafe_yaml(tree)
    for call in calls(tree):
        name, words = ast.unparse(call.func), given(call)
        if name in RUN_TEXT | OPEN_SHELLS:
            yield name
        key, wanted = NEEDED.get(name.replace("numpy.", "np."), ("", None))
        if key and (key not in words or ast.unparse(words[key]) != str(wanted)):
            yield f"{name} without {key}={wanted}"
        if "shell" in words or ast.unparse(words.get("verify", ast.Constant(True))) == "False":
            yield f"{name} with a shell, or without checking a certificate"


def unsafe_yaml(tree):
    """Yield what a module uses of PyYAML besides the functions that make plain values only."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "yaml":
            yield ast.unparse(node)
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.partition(".")[0] == "yaml"]
            yield from (alias.name for alias in names if alias.asname or alias.name != "yaml")
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "yaml":
            yield from {f"yaml.{node.attr}"} - {f"yaml.{name}" for name in SAFE_YAML}


def opens_models_unasked(tree):
    """Yield calls that open a model's folder and leave it to the framework whether to run its code."""
    aliases = {
        ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for node in nodes(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in FROM_A_FOLDER
    }
    telling = {
        ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for node in nodes(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Dict)
        and "trust_remote_code" in [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
    }  # fmt: skip
    for call in calls(tree):
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] in FROM_A_FOLDER or name in aliases:
            spread = {ast.unparse(word.value) for word in call.keywords if word.arg is None}
            if "trust_remote_code" not in given(call) and not spread & telling:
                yield name


def trusts(tree):
    """Yield each value that is given for trust_remote_code."""
    for node in nodes(tree):
        if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
            yield ast.unparse(node.value)
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (
                ast.unparse(value)
                for key, value in pairs
                if isinstance(key, ast.Constant) and key.value == "trust_remote_code"
            )


def mixed_into_sql(tree):
    """Yield what f-strings of SQL are put together from, constants (in capitals) aside."""
    for node in nodes(tree):
        if not isinstance(node, ast.JoinedStr) or not isinstance(node.values[0], ast.Constant):
            continue
        if SQL.match(node.values[0].value):
            parts = [part for part in node.values if isinstance(part, ast.FormattedValue)]
            yield from (
                text for part in parts if not (text := ast.unparse(part.value)).isupper()
            )  # fmt: skip


def parses_without_bottom(tree):
    """Yield calls of parsers whose `try` does not expect that a text is nested too deeply."""
    guarded = {
        call
        for node in nodes(tree)
        if isinstance(node, ast.Try)
        and any(
            "RecursionError" in ast.unparse(handler.type or ast.Name(""))
            for handler in node.handlers
        )
        for statement in node.body
        for call in calls(statement)
    }
    for call in calls(tree):
        parsing = ast.unparse(call.func) in PARSERS
        if parsing and call not in guarded:
            yield ast.unparse(call)


def found(rule):
    return [
        f"{path.relative_to(ROOT)}: {what}" for path, tree in trees().items() for what in rule(tree)
    ]


@pytest.mark.parametrize(
    ("rule", "code", "count"),
    [
        (runs_what_it_reads, "import pickle\nfrom yaml import load", 2),
        (runs_what_it_reads, "import yaml\nyaml.load(f); yaml.safe_load(f); yaml.Loader", 2),
        (runs_what_it_reads, "import yaml as y; import yaml.cyaml; import yaml_env", 2),
        (runs_what_it_reads, "eval('1'); exec(x); os.system(y)", 3),
        (runs_what_it_reads, "torch.load(f); np.load(f); numpy.load(f, allow_pickle=True)", 3),
        (runs_what_it_reads, "torch.load(f, weights_only=True); np.load(f, allow_pickle=False); m.eval()", 0),
        (runs_what_it_reads, "subprocess.run(c, shell=True); get(u, verify=False)", 2),
        (opens_models_unasked, "A.from_pretrained(f)\nbuild: Any = A.from_config\nbuild(c)", 2),
        (opens_models_unasked, "s = {'trust_remote_code': False}\nA.from_pretrained(f, **s)", 0),
        (mixed_into_sql, "f'SELECT {name} FROM {TABLE}'; f'not SQL {name}'", 1),
        (parses_without_bottom, "try: json.loads(t)\nexcept ValueError: pass", 1),
        (parses_without_bottom, "try: json.loads(t)\nexcept (ValueError, RecursionError): pass", 0),
    ],
)  # fmt: skip
def test_the_rules_find_what_they_forbid(rule, code, count):
    assert len([*rule(ast.parse(code))]) == count


def test_nothing_that_is_read_is_run():
    assert found(runs_what_it_reads) == []


def test_code_of_a_model_is_run_where_the_user_says_so_and_nowhere_else():
    assert found(opens_models_unasked) == []
    values = {value for tree in trees().values() for value in trusts(tree)}
    assert values == {"False", "options.trust_remote_code", "self._options.trust_remote_code"}
    assert ModelOptions().trust_remote_code is False


def test_sql_is_put_together_from_our_own_names_only():
    mixed = {
        (place, what)
        for place, _, what in (line.partition(": ") for line in found(mixed_into_sql))
        if what not in MIXED.get(place, ())
    }
    assert mixed == set()


READ_OUR_OWN = {
    "app/giccs_app/explorer/labels/__init__.py", "mturk/kinds/texts.py",  # files of the packages
    "mturk/service/site/texts.py",
    "giccs/models/object_digest.py",  # what a loaded tokenizer returned
    # what we wrote into the ledger
    "mturk/study/ledger.py", "mturk/study/prolific.py", "mturk/study/rounds.py",
    "app/giccs_app/demo/service.py",  # what our own process said
    "giccs/models/served/responses.py",  # what we wrote into the cache of answers
}  # fmt: skip


def test_parsers_expect_texts_without_bottom():
    lines = [
        line for line in found(parses_without_bottom) if line.split(":")[0] not in READ_OUR_OWN
    ]
    assert lines == []


def test_templates_escape():
    made = [
        call
        for tree in trees().values()
        for call in calls(tree)
        if ast.unparse(call.func) == "Environment"
    ]
    assert len(made) >= 2
    assert all(ast.unparse(given(call)["autoescape"]) == "True" for call in made)
    pages = [path for package in PACKAGES for path in (ROOT / package).rglob("templates/*.html")]
    unescaped = {
        path.name: re.findall(r"\{[{%][^}]*\bsafe\b[^}]*\}+", path.read_text("utf-8"))
        for path in pages
    }
    # a chart that vl-convert drew: it escapes what it writes, and the page runs no script
    assert {name: each for name, each in unescaped.items() if each} == {
        "page.html": ["{{ figure.svg | safe }}"]
    }
    scripts = [path for package in PACKAGES for path in (ROOT / package).rglob("*.js")]
    assert len(scripts) >= 6
    writes = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    assert [path.name for path in scripts if writes.search(path.read_text("utf-8"))] == []


def test_the_report_forbids_scripts():
    page = (ROOT / "app/giccs_app/report/templates/page.html").read_text("utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)[1]
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy
    assert page.index("Content-Security-Policy") < page.index("<style>")


# Models of strangers


def model_folder(folder, **files):
    folder.mkdir()
    for name, document in {"config": {"model_type": "bert"}, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_classes_of_strangers_in_a_sentence_model_need_the_flag(tmp_path):
    ours = [{"type": "sentence_transformers.models.Transformer"}]
    folder = model_folder(tmp_path / "a", modules=[*ours, {"type": "theirs.Model"}])
    with pytest.raises(
        InputError, match="its own code; review it, then allow it with --trust-remote"
    ):
        saved_model("a", folder, ModelOptions())
    assert saved_model("a", folder, ModelOptions(trust_remote_code=True)).folder == folder
    plain = model_folder(tmp_path / "b", modules=ours)
    assert saved_model("b", plain, ModelOptions()).folder == plain


def test_a_tokenizer_with_code_is_refused_and_nobody_is_asked(tmp_path, monkeypatch):
    base = pytest.importorskip("giccs.csts.encoders.base")
    ran = tmp_path / "ran"
    told = {"auto_map": {"AutoTokenizer": ["theirs.Tokens", None]}, "tokenizer_class": "Tokens"}
    folder = model_folder(tmp_path / "a", config={"model_type": "theirs"}, tokenizer_config=told)
    (folder / "theirs.py").write_text(f"open({str(ran)!r}, 'w')\nclass Tokens: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(InputError, match="cannot load its tokenizer"):
        base.load_tokens("a", folder, 128)
    assert not ran.exists()


def test_recipes_cannot_say_where_a_key_goes_or_whose_code_runs(tmp_path):
    from giccs.tasks import TaskOptions

    assert not {"base_url", "trust_remote_code"} & {field.name for field in fields(TaskOptions)}
    recipe = tmp_path / "recipe.toml"
    for key in ('base_url = "https://evil.example/v1"', "trust_remote_code = true"):
        for place in (key, f"[model.ask]\n{key}"):
            recipe.write_text(
                f'data = "giccs-sample"\n[[model]]\nname = "chat:x"\ntask = "pairwise-sts"\n{place}\n'
            )
            with pytest.raises(
                InputError,
                match=r"(base_url|trust_remote_code) is unknown|unknown option (base_url|trust_remote_code)",
            ):
                read_recipe(recipe)


# Names in results

NAMES = [
    "../../../out", "/etc/passwd", "..", ".", "", "a/../../b", "..\\..\\c", "C:\\x", "x\0y", "../" * 40,
    ".ssh/authorized_keys", "n" * 500, "\u202e", "$(touch x)", "-rf",
]  # fmt: skip


def result(name, task):
    number = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 3, "stderr": 0.1}
    metrics = {"pearson": number, "spearman": number, "accuracy": number}
    signature = {"history": name, "revision": name, "data": name, "similarity": name}
    document = {
        "model": name, "task": task, "metrics": metrics, "signature": signature, "seconds": 1,
        "groups": [{"by": {"history": name}, "metrics": metrics}],
        "environment": {"when": name, "data": name, "language": "de"},
    }  # fmt: skip
    return Result.from_document(document)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_results_stay_in_the_folder(tmp_path, name):
    inside = tmp_path / "a" / "b" / "c"
    for task, write in (
        ("pairwise-sts", mteb.write_results),
        ("multiple-choice-sts", lm_eval.write_results),
    ):
        [written] = write([result(name, task)], inside)
        assert written.resolve().is_relative_to(inside)
        assert len(written.relative_to(inside).parts) <= 4
    kept = Store(inside).add(result(name, name))
    assert kept.resolve().parent == inside
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert all(path.is_relative_to(inside) for path in files)


def test_a_card_removes_nothing_through_a_link(tmp_path):
    from giccs.description.card.folder import check_folder

    (tmp_path / "mine").mkdir()
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "data").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="is a link; choose another folder"):
        check_folder(tmp_path / "card")


# Files that want memory, or a stack without end

LIMIT = 3 * 2**30
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from pathlib import Path
from bws.base.problems import InputError
{code}
for path in sys.argv[2:]:
    try:
        read(path)
        print("read")
    except InputError as error:
        print(error)
status = Path("/proc/self/status").read_text()  # ru_maxrss is also that of the process it came from
print(status.split("VmHWM:")[1].split()[0])
"""


def read_within(code, *paths):
    """Return what a process says that reads the files, and the bytes of memory that it came to."""
    done = subprocess.run(
        [sys.executable, "-c", READ.format(code=code), str(LIMIT), *map(str, paths)],
        capture_output=True, text=True, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *message, most = done.stdout.splitlines()
    return message, int(most) * 1024


def bomb(path, piece, times):
    """Write a gzip file that holds `piece` so many times; a file may be several that follow each other."""
    path.write_bytes(gzip.compress(piece, mtime=0) * times)
    return path


@pytest.mark.parametrize(
    ("code", "name", "line", "times"),
    [
        ("from giccs.benchmark import read_benchmark as read", "dialogues.jsonl.gz", b"\0", 128),
        (
            "from bws.files import read_judgments as read",
            "judgments.csv.gz",
            b"t1,a,b,c,a,c\n",
            128,
        ),
        (
            "from giccs.models.static.formats import blocks\ndef read(path): [*map(id, blocks(Path(path)))]",
            "vectors.txt.gz",
            b"word 0.25 0.5\n",
            16,
        ),
    ],
)
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path, code, name, line, times):
    path = bomb(tmp_path / name, line * (16 * MIB // len(line)), times)
    assert path.stat().st_size * 200 < 16 * MIB * times  # 128 times are 2 GiB
    [said], most = read_within(code, path)
    assert said == (
        f"{path}: decompresses to more than 100 times its size; if you trust it, decompress it first"
    )
    assert most < LIMIT / 2


def test_small_files_are_unpacked_however_well_they_pack(tmp_path):
    text = b"a" * (32 * MIB)
    assert read_bytes(bomb(tmp_path / "a.gz", text, 1)) == text


def test_no_more_is_unpacked_than_memory_is_meant_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("bws.base.text.UNPACKED", 3 * MIB)
    with pytest.raises(InputError, match=r"more than 3,145,728 bytes; decompress it first"):
        read_bytes(bomb(tmp_path / "a.gz", random.Random(0).randbytes(MIB), 4))


DEEP = 100_000


def deep(path, before="", after=""):
    path.write_text(before + "[" * DEEP + "]" * DEEP + after)
    return path


def nested_model(path):
    folder = path.parent / "model"
    folder.mkdir()
    deep(folder / "config.json")
    saved_model("m", folder, ModelOptions())


def nested_results(path):
    folder = path.parent / "results"
    folder.mkdir()
    deep(folder / "a--b--c.json", '{"model": ', "}")
    [*Store(folder).results()]


def nested_toml(read):
    return lambda path: read(deep(path, "a = "))


def nested(read, before="", after="\n"):
    return lambda path: read(deep(path, before, after))


def readers():
    from giccs.csts.encoders.sweep import read_grid
    from giccs.description.card.stated import read_stated
    from giccs.preparation.selection.rules import read_rules
    from mturk.service.api.authentication import read_keys
    from mturk.service.site.studies import read_studies
    from mturk.study.qualification import read_test
    from mturk.study.settings_file import read_settings

    def keys(path):
        path.chmod(0o600)
        read_keys(str(path), {})

    toml = (
        read_recipe,
        read_stated,
        read_rules,
        read_settings,
        read_studies,
        read_test,
        read_grid,
        keys,
    )
    return {
        "benchmark": nested(read_benchmark),
        "value": nested(read_benchmark, '{"item_id": "a", "turns": ', "}\n"),
        "judgments": nested(read_judgments),
        "model": nested_model,
        "results": nested_results,
        **{f"toml {read.__name__}": nested_toml(read) for read in toml},
    }


READERS = readers() if sys.platform == "linux" else {}


@pytest.mark.parametrize("kind", READERS)
def test_nesting_without_bottom_is_a_sentence(tmp_path, kind):
    with pytest.raises(InputError) as caught:
        READERS[kind](tmp_path / "file.json")
    assert len(str(caught.value)) < 2000


# Parquet


@pytest.fixture
def arrow():
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    return pyarrow


def small_parquet():
    import polars as pl

    rows = [{"speaker": "a", "text": "hello"}]
    frame = pl.DataFrame({"item_id": ["a", "b"] * 50, "score": [0.5] * 100, "turns": [rows] * 100})
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def test_equal_values_without_end_are_not_made_into_objects(tmp_path, arrow):
    path, column = (
        tmp_path / "test-0.parquet",
        arrow.repeat(arrow.scalar(0, arrow.int32()), 100_000),
    )
    words = arrow.DictionaryArray.from_arrays(column, ["x" * 100_000])  # 10 GB of text
    arrow.parquet.write_table(arrow.table({"words": words}), path, store_schema=False)
    assert path.stat().st_size < 10_000
    code = "from giccs.benchmark.parquet import parquet_rows\ndef read(path): [*map(id, parquet_rows(path))]"
    [said], most = read_within(code, path)
    assert re.search(
        r"its values require 10,000,\d{3},\d{3} bytes; expected at most 4,294,967,296", said
    )
    assert most < LIMIT / 2


def test_more_rows_than_anybody_has_are_not_read(tmp_path, arrow):
    path = tmp_path / "a.parquet"
    arrow.parquet.write_table(arrow.table({"a": arrow.nulls(20_000_001, arrow.bool_())}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"20,000,001 rows; expected at most 20,000,000"):
        read_table(path)


def said_of(data):
    """Return text of a damaged file; empty where it can be read nevertheless."""
    try:
        read_table(data)
    except ValueError as error:
        return str(error)
    return ""


def test_damaged_parquet_is_a_sentence(capfd):
    whole, draw = small_parquet(), random.Random(1)
    said = []
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            damaged[draw.randrange(4, len(damaged) - 8)] = draw.randrange(256)
        said.append(said_of(bytes(damaged)))
    assert len([one for one in said if one]) > 100
    assert not any("\n" in one for one in said)
    with pytest.raises(ValueError, match=r"(?i)parquet"):
        count_rows(b"PAR1" + bytes(100) + b"PAR1")
    capfd.readouterr()  # what Polars says of its panics


def test_a_panic_of_polars_is_a_fault_of_the_file():
    from polars.exceptions import PanicException

    assert not issubclass(PanicException, Exception)  # why it must be named
    with pytest.raises(ValueError, match=r"^unwrapped nothing$"), polars_errors_as_value_errors():
        raise PanicException("unwrapped nothing\nstack backtrace")


# What a terminal obeys

FOR_TERMINALS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def test_names_cannot_command_the_terminal(capsys):
    hostile = "a\x1b]0;title\x07b\x9b2Jc\rd\x7f ü\tend\u202eX\u2066Y\u2069\u200f\u2028z\u200d\n"
    told = (
        "a\\u001b]0;title\\u0007b\\u009b2Jc\\u000dd\\u007f ü\tend\\u202eX\\u2066Y\\u2069\\u200f"
        "\\u2028z\u200d\n"
    )  # joiners stay: they are part of words in Persian and Hindi, and of emoji
    Console(as_json=False, quiet=False).answer(hostile, {})
    Console(as_json=False, quiet=False).note(hostile)
    out, err = capsys.readouterr()
    assert out == err == f"{told}\n"
    Console(as_json=True, quiet=False).answer("", {"name": hostile})
    text = capsys.readouterr().out
    assert json.loads(text) == {"name": hostile}
    assert not FOR_TERMINALS.search(text)


def test_errors_of_all_kinds_cannot_command_the_terminal(tmp_path):
    def fail(error):
        @command("probe", "probe")
        @click.argument("path", type=click.Path(exists=True), default=".")
        def probe(console, path):
            raise error

        return CliRunner().invoke(probe)

    name = "a\u202eb\x1b[2J"
    errors = [
        click.ClickException(name), click.UsageError(name), OSError(5, name, name), MemoryError(name),
        InputError(Problem(name, 1, name)), click.BadParameter(name),
    ]  # fmt: skip
    for error in errors:
        output = fail(error).output
        assert "a\\u202eb\\u001b[2J" in output, error
        assert not FOR_TERMINALS.search(output), error
    probe = command("probe", "probe")(lambda console: None)
    output = CliRunner().invoke(probe, [name]).output
    assert "\\u202e" in output
    assert not FOR_TERMINALS.search(output)


def test_a_file_written_to_the_terminal_cannot_command_it(tmp_path):
    """In a pseudo-terminal; in a pipe the bytes stay as they are."""
    code = "from bws.base.text import write_atomic; write_atomic('-', 'comment\\na\\u202eb\\x1b[2J\\n')"
    reader, writer = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=writer, timeout=120, check=True)
    os.close(writer)
    assert os.read(reader, 1000) == b"comment\r\na\\u202eb\\u001b[2J\r\n"
    os.close(reader)
    piped = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=120, check=True
    )
    assert piped.stdout.decode() == "comment\na\u202eb\x1b[2J\n"


def test_all_output_to_the_terminal_is_escaped_in_one_place():
    """Nothing but bws/base/terminal.py prints, so that no command forgets to escape."""
    printing = {
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, tree in trees().items()
        for call in calls(tree)
        if ast.unparse(call.func) in {"print", "click.echo", "click.secho"}
    }
    assert {place.partition(":")[0] for place in printing} == {"bws/base/terminal.py"}


def test_results_and_faults_cannot_command_the_terminal(tmp_path, commands):
    Store(tmp_path).add(result("m\x1b[2J\x9b", "pairwise-sts"))
    for arguments in (("giccs-report", tmp_path), ("bws-score", tmp_path / "a\x9b2J.csv")):
        done = commands.run(*arguments)
        message = done.stdout + done.stderr
        assert "Traceback" not in message
        assert "\\u009b" in message
        assert not FOR_TERMINALS.search(message)


# Who may read what is written


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_what_holds_people_or_secrets_is_for_its_owner_alone(tmp_path, monkeypatch):
    from giccs.caching import cache_folder
    from mturk.service.store.database import Database
    from mturk.study.ledger import Ledger
    from mturk.study.privacy import key_path, pseudonym_namer

    database = Database(tmp_path / "hits.db")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        pseudonym_namer(ledger)
        assert key_path(ledger).is_file()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    database.close()
    assert {"hits.db", "hits.db-wal", "ledger.db", "ledger.db-wal", "ledger.db.key"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700


def test_the_password_of_a_database_is_in_no_message():
    pytest.importorskip("psycopg")
    from mturk.service.store.database import Database

    with pytest.raises(InputError) as caught:
        Database("postgresql+psycopg://giccs:geheim@127.0.0.1:1/study")
    assert "***" in str(caught.value)
    assert "geheim" not in f"{caught.value!r} {caught.value}"


def test_a_cache_of_a_stranger_runs_nothing_and_gives_texts(tmp_path):
    from giccs.models.served.cache import Cache

    cache = Cache(tmp_path / "answers.sqlite")
    [[trusted]] = cache._connection.execute("PRAGMA trusted_schema").fetchall()
    assert trusted == 0
    cache._connection.execute(
        "INSERT INTO answers (request, answer, model) VALUES ('a', x'00', 'm')"
    )
    with pytest.raises(InputError, match="damaged"):
        cache.find(["a"])
    cache.close()


# The document


@pytest.mark.parametrize("page", ["security.md", "data-protection.md"])
def test_the_threat_model_names_tests_that_exist(page):
    text = (ROOT / "docs" / "operations" / page).read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 25
    for file, test in named:
        path = ROOT / file
        assert path.is_file(), file
        assert not test or re.search(rf"^(?:async )?def {test}\(", path.read_text("utf-8"), re.M), (
            file,
            test,
        )
