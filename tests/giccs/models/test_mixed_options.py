"""An option that applies to some kinds of models, in a call with others: it is used for these only."""

import pytest
from click.testing import CliRunner

import giccs
from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.csts.cli.answers import answers
from giccs.evaluation.run import open_each_prompt, supported_jobs
from giccs.models import ModelOptions, check_server_options, open_model
from giccs.tasks import TaskOptions, open_tasks
from giccs_app.judging.cli import judge

from ..deferred import requires
from ..judging.test_judging import DIALOGUES, TUPLES

pytestmark = requires("openai")

SERVER = "http://127.0.0.1:9/v1"
NONE_SERVED = "no model is on a server; expected chat:NAME, completions:NAME or embeddings:NAME"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "mixed_models.py").write_text("overlap = lambda left, right: [0.5] * len(left)\n")
    monkeypatch.chdir(tmp_path)


def opened(names, **options):
    notes = []
    return open_each_prompt(names, ModelOptions(**options), note=notes.append), notes


def run(command, *arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


def test_the_address_of_a_server_is_for_the_models_on_it():
    """Others are opened as without it, also functions."""
    names = ["baseline:chance", "python:mixed_models:overlap", "chat:tiny", "embeddings:tiny"]
    models, notes = opened(names, base_url=SERVER, price=(1.0, 2.0), concurrency=2)
    assert [each.model.name for each in models] == names
    assert notes == []
    assert [each.model.identity.get("base_url") for each in models] == [None, None, SERVER, SERVER]


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"base_url": SERVER}, ["--base-url"]),
        ({"price": (1.0, 2.0), "budget": 3.0}, ["--price", "--budget"]),
        ({"concurrency": 2}, ["--concurrency"]),
    ],
)
def test_server_options_without_a_server_are_named(options, flags):
    local = [open_model("baseline:chance"), open_model("baseline:char-ngram")]
    with pytest.raises(InputError) as caught:
        check_server_options(local, ModelOptions(**options))
    assert str(caught.value).splitlines() == [f"{flag}: {NONE_SERVED}" for flag in flags]
    served = open_model("embeddings:tiny+whitening", ModelOptions(base_url=SERVER))
    check_server_options([*local, served], ModelOptions(**options))
    check_server_options(local, ModelOptions())


def test_commands_name_the_option(tiny_gpt, tmp_path):
    output, model = tmp_path / "o", f"causal:{tiny_gpt}"
    for command, *arguments in (
        (evaluate, "baseline:chance", "-o", output),
        (judge, TUPLES, "--dialogues", DIALOGUES, "--model", model, "-o", output),
        (answers, "csts-sample", "--model", model, "-o", output),
    ):
        done = run(command, *arguments, "--base-url", SERVER)
        assert (done.exit_code, done.stderr) == (2, f"--base-url: {NONE_SERVED}\n")
    with pytest.raises(InputError, match=f"--base-url: {NONE_SERVED}"):
        giccs.evaluate("baseline:chance", base_url=SERVER)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://host", "must begin with http:// or https:// and a host"),
        ("http://user:word@host/v1", "must not contain user, password, query or fragment"),
        ("http://[host", "is invalid"),
    ],
)
def test_an_invalid_address_names_the_option_or_the_variable(url, problem, monkeypatch):
    with pytest.raises(
        InputError, match=rf"chat:m: the address of the server \(--base-url\) {problem}"
    ):
        open_model("chat:m", ModelOptions(base_url=url))
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(InputError, match=rf"address of the server \(OPENAI_BASE_URL\) {problem}"):
        open_model("chat:m")


UNSUPPORTED = {
    "prompt": (("a=b: ",), "supports no prompts"),
    "pooling": ("cls", "supports no other pooling"),
    "dimensions": (8, "returns no vectors"),
    "embeddings": ("int8", "returns no vectors"),
    "quantise": ("8bit", "has no weights to quantise"),
    "device_map": ("auto", "cannot be distributed over devices"),
}


@pytest.mark.parametrize("option", UNSUPPORTED)
def test_other_options_apply_to_the_models_that_support_them(option, plain_encoder, monkeypatch):
    """With a note about the others; alone, these are refused."""
    monkeypatch.setattr("giccs.models.quantisation.find_spec", lambda name: True)
    value, reason = UNSUPPORTED[option]
    flag = f"--{option.replace('_', '-')}"
    models, notes = opened([str(plain_encoder), "baseline:chance"], **{option: value})
    assert [getattr(each.options, option) for each in models] == [
        value, getattr(ModelOptions(), option)
    ]  # fmt: skip
    assert notes == [f"baseline:chance: {reason}; evaluated without {flag}"]
    with pytest.raises(InputError) as caught:
        opened(["baseline:chance", "baseline:char-ngram"], **{option: value})
    assert str(caught.value).splitlines() == [
        f"baseline:{name}: {reason}; omit {flag}" for name in ("chance", "char-ngram")
    ]


def test_a_model_without_prompts_is_evaluated_once(plain_encoder, tmp_path):
    prompts = ("none", "a=b: ")
    models, notes = opened([str(plain_encoder), "baseline:chance"], prompt=prompts, dimensions=8)
    assert [each.model.name for each in models] == [str(plain_encoder)] * 2 + ["baseline:chance"]
    assert len(notes) == 2
    done = run(
        evaluate, plain_encoder, "baseline:chance", "--prompt", "none", "--prompt", "a=b: ", "--limit", 5,
        "-o", tmp_path / "results",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "baseline:chance: supports no prompts; evaluated without --prompt" in done.stderr
    assert done.stderr.count("baseline:chance: pairwise-sts ...") == 1


TASK_OPTIONS = {
    "--history-encoding": ({"history": "both", "history_encoding": ("mean",)}, "pairwise-sts"),
    "--similarity": ({"similarity": "l2"}, "pairwise-sts"),
    "--similarity of rated pairs": ({"similarity": "l2"}, "sentence-similarity"),
    "--encoding": ({"encoding": "tri"}, "csts"),
}


@pytest.mark.parametrize("option", TASK_OPTIONS)
def test_options_of_tasks_apply_to_the_models_that_support_them(option, plain_encoder):
    """The others are evaluated without them; if no model supports an option, nothing is."""
    options, task = TASK_OPTIONS[option]
    models = [*open_each_prompt([str(plain_encoder), "baseline:chance"])]
    notes = []
    (_, of_encoder), (_, of_baseline) = supported_jobs(
        models, [task], TaskOptions(**options), note=notes.append
    )
    assert of_encoder == open_tasks(task, TaskOptions(**options))
    history = {"history": options["history"]} if "history" in options else {}
    assert of_baseline == open_tasks(task, TaskOptions(**history))
    (message,) = notes
    assert message.startswith("baseline:chance: ")
    assert message.endswith(f"vectors; evaluated without {option.split()[0]}")
    default_tasks = [[]] if task == "pairwise-sts" else []
    for names in [[task], *default_tasks]:
        with pytest.raises(InputError, match=f"baseline:chance: .* {task}.* requires"):
            supported_jobs(models[1:], names, TaskOptions(**options))


def test_one_of_several_values_of_an_option_is_left_out(plain_encoder):
    models = open_each_prompt([str(plain_encoder), "baseline:chance"])
    options = TaskOptions(history="with", history_encoding=("mean", "instruction"))
    notes = []
    (_, of_encoder), (_, of_baseline) = supported_jobs(
        models, ["pairwise-sts"], options, note=notes.append
    )
    assert [task.history_encoding for task in of_encoder] == ["mean", "instruction"]
    assert [task.history_encoding for task in of_baseline] == ["instruction"]
    (message,) = notes
    assert message.endswith("evaluated without --history-encoding mean")


def test_tasks_apply_to_the_models_that_support_them(plain_encoder, tiny_gpt):
    names = ["pairwise-sts", "multiple-choice-sts"]
    models = open_each_prompt([str(plain_encoder), f"causal:{tiny_gpt}"])
    notes = []
    groups = supported_jobs(models, names, TaskOptions(), note=notes.append)
    assert [[task.name for task in tasks] for _, tasks in groups] == [[name] for name in names]
    assert notes == [
        f"causal:{tiny_gpt}: does not compare texts; evaluated without --task pairwise-sts",
        f"{plain_encoder}: returns no likelihoods; evaluated without --task multiple-choice-sts",
    ]
    with pytest.raises(InputError) as caught:
        supported_jobs(models, names[:1], TaskOptions())
    assert [problem.file for problem in caught.value.problems] == [f"causal:{tiny_gpt}"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("permutations", 3), ("chat_template", True), ("choose_by", "generation"), ("max_tokens", 5)],
)
def test_an_option_of_a_default_task_that_no_model_supports_is_refused(option, value):
    models = open_each_prompt(["baseline:chance", "baseline:char-ngram"])
    with pytest.raises(InputError) as caught:
        supported_jobs(models, [], TaskOptions(**{option: value}))
    flag = f"--{option.replace('_', '-')}"
    assert (
        str(caught.value) == f"{flag}: is an option of multiple-choice-sts, which no model supports"
    )


def test_an_option_of_a_default_task_is_used_if_one_model_supports_it(tiny_gpt):
    models = open_each_prompt(["baseline:chance", f"causal:{tiny_gpt}"])
    (_, of_baseline), (_, of_causal) = supported_jobs(models, [], TaskOptions(permutations=3))
    assert [task.name for task in of_baseline] == ["pairwise-sts"]
    assert [task.permutations for task in of_causal] == [3]
    with pytest.raises(
        InputError, match="--similarity: is an option of pairwise-sts, which no model"
    ):
        supported_jobs(models[1:], [], TaskOptions(similarity="l2"))


def test_only_hub_ids_have_revisions(plain_encoder, tmp_path):
    (tmp_path / "vectors.txt").write_text("yes 1 0\nno 0 1\n")
    for name in (
        "baseline:chance", "package:minilm", "package:use-multilingual", "chat:m",
        f"static:{tmp_path}/vectors.txt", "python:mixed_models:overlap",
        str(plain_encoder), f"encoder:{plain_encoder}", f"encoder:{plain_encoder}+whitening",
    ):  # fmt: skip
        with pytest.raises(InputError, match="is no hub id; omit --revision"):
            open_model(name, ModelOptions(revision="v1", base_url=SERVER))


def test_word_vectors_have_one_pooling(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("yes 1 0\nno 0 1\n")
    for pooling in ("mean", "model"):
        assert (
            open_model(f"static:{path}", ModelOptions(pooling=pooling)).identity["pooling"]
            == "mean"
        )
    with pytest.raises(InputError, match="supports no other pooling; omit --pooling"):
        open_model(f"static:{path}+abtt", ModelOptions(pooling="cls"))


def test_objects_and_names_share_options(plain_encoder):
    """Loading was done by the caller: the option is for the other model, and Python warns."""
    data = read_benchmark("giccs-sample").first(5)
    models = [lambda left, right: [float(len(text)) for text in right], str(plain_encoder)]
    with pytest.warns(UserWarning, match="<lambda>: is already loaded; evaluated without --device"):
        results = giccs.evaluate(models, data, "pairwise-sts", device="cpu", base_url=None)
    assert [result.model for result in results] == ["<lambda>", str(plain_encoder)]
    with pytest.raises(
        InputError, match="<lambda>: is already loaded; omit --dtype and --revision"
    ):
        giccs.evaluate(models[0], data, "pairwise-sts", dtype="float16", revision="v1")


def test_a_hub_id_offline_names_the_command_and_the_package(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub_id = "sentence-transformers/all-MiniLM-L6-v2"
    for name, revision, command in (
        (hub_id, None, f"hf download {hub_id}; or use package:minilm, the same model in a package"),
        ("lab/encoder", "v2", "hf download lab/encoder --revision v2"),
        ("encoder:lab/encoder", None, "hf download lab/encoder"),
    ):
        with pytest.raises(InputError) as caught:
            open_model(name, ModelOptions(offline=True, revision=revision))
        assert str(caught.value).endswith(
            f"download it once, where the hub can be reached: {command}"
        )


def test_a_data_set_offline_names_the_command(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"reached: hf download lab/data --repo-type dataset$"):
        read_benchmark("lab/data")
