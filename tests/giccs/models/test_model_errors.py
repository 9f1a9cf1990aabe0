"""Whatever a framework raises while a model runs is one line: the model, the cause and a remedy."""

import logging

import pytest
from click.testing import CliRunner

import giccs
from giccs.benchmark import read_benchmark
from giccs.cli.evaluation import evaluate
from giccs.csts.cli.answers import answers
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Prompt
from giccs.models.model_errors import ModelMemoryError
from giccs.progress import silent
from giccs_app.judging.cli import judge

from ..causal_models import make_model, transformers
from ..deferred import Deferred
from ..judging.test_judging import DIALOGUES, TUPLES
from .test_input_limits import BART, BERT, of_config, saved

torch = Deferred("torch")
library = Deferred("sentence_transformers")

FAULT = IndexError("index out of range in self\nat a line that is not shown")
LINE = (
    "{}: cannot process the inputs (IndexError: index out of range in self); its tokenizer or its "
    "maximum number of tokens may not match its weights; see --verbose"
)
PROMPTS = [Prompt("Ja oder Nein?", (" Ja", " Nein"))]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def fault(monkeypatch):
    """Return a function that lets every embedding raise an exception."""

    def set_fault(error):
        def forward(*arguments, **settings):
            raise error

        monkeypatch.setattr("torch.nn.Embedding.forward", forward)

    return set_fault


def bert_folder(folder, kind="BertModel", **values):
    torch.manual_seed(0)
    config = transformers.BertConfig(**{**BERT, "max_position_embeddings": 64, **values})
    return saved(folder, getattr(transformers, kind)(config))


def models_of(folder):
    """Return kind -> name of a model, and a function that runs it."""
    pairs = lambda model: model.pair_scores(["a"], ["b"], silent)  # noqa: E731
    plain = bert_folder(folder / "plain")
    classifier = bert_folder(folder / "pairs", "BertForSequenceClassification", num_labels=1)
    causal = make_model(folder / "causal")
    seq2seq = saved(folder / "seq2seq", of_config("Bart", **BART))
    return {
        "encoder": (f"encoder:{plain}", pairs),
        "layers": (f"{plain}+first-last", pairs),
        "whitening": (f"{plain}+whitening", pairs),
        "cross-encoder": (f"cross-encoder:{classifier}", pairs),
        "late-interaction": (f"late-interaction:{plain}", pairs),
        "scores": (f"causal:{causal}", lambda model: model.score(PROMPTS, silent)),
        "answers": (f"causal:{causal}", lambda model: model.respond(["Ja"], 2, silent)),
        "seq2seq": (f"seq2seq:{seq2seq}", lambda model: model.generate(["a"], 2, silent)),
    }


def test_every_kind_of_model_names_itself_and_the_cause(tmp_path, fault):
    models = models_of(tmp_path)
    fault(FAULT)
    for kind, (name, run) in models.items():
        with pytest.raises(giccs.InputError) as caught:
            run(open_model(name))
        lines = str(caught.value).splitlines()
        base = name.partition("+")[0]  # The model, or its first layer, states the cause.
        assert lines in ([LINE.format(name)], [LINE.format(base)]), kind
        assert caught.value.__cause__ is FAULT


def test_the_lack_of_memory_names_the_model(tmp_path, fault):
    models = models_of(tmp_path)
    fault(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    for kind, (name, run) in models.items():
        with pytest.raises(ModelMemoryError) as caught:
            run(open_model(name))
        (line,) = str(caught.value).splitlines()
        assert line.startswith(name.partition("+")[0]), kind
        assert "memory" in line, kind
        assert line.endswith(
            "use a smaller --batch-size, --dtype bfloat16, --quantise, or another --device"
        )


def test_other_remedies(tmp_path, fault):
    model = open_model(f"encoder:{bert_folder(tmp_path)}")
    for error, remedy in {
        RuntimeError("\"LayerNormKernelImpl\" not implemented for 'Half'"): "try --dtype float32",
        RuntimeError("CUDA error: an illegal instruction was encountered"): "try --device cpu",
        AttributeError(
            "'BertModel' object has no attribute 'x'"
        ): "or package versions other than these",
    }.items():
        fault(error)
        with pytest.raises(giccs.InputError, match=f"{remedy}; see --verbose$"):
            model.pair_scores(["a"], ["b"], silent)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ModuleNotFoundError("x")]
)
def test_what_commands_report_themselves_is_unchanged(tmp_path, fault, error):
    model = open_model(f"encoder:{bert_folder(tmp_path)}")
    fault(error)
    with pytest.raises(type(error)) as caught:
        model.pair_scores(["a"], ["b"], silent)
    assert caught.value is error


def run_eval(*arguments):
    return CliRunner().invoke(evaluate, [*map(str, arguments)])


def test_a_failing_model_does_not_stop_the_others(tmp_path, fault):
    folder = bert_folder(tmp_path / "m")
    fault(FAULT)
    arguments = (
        f"encoder:{folder}", "baseline:char-ngram", "--task", "pairwise-sts", "--limit", 5, "-o",
        tmp_path / "results",
    )  # fmt: skip
    done = run_eval(*arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == LINE.format(f"encoder:{folder}")
    assert "Traceback" not in done.output
    assert "baseline:char-ngram" in done.stdout
    verbose = run_eval(*arguments, "--verbose")
    assert "Traceback" in verbose.stderr
    assert "IndexError: index out of range in self" in verbose.stderr
    assert LINE.format(f"encoder:{folder}") in verbose.stderr.splitlines()


def test_no_memory_is_one_line_of_the_command(tmp_path, fault):
    folder = bert_folder(tmp_path / "m")
    fault(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    done = run_eval(f"encoder:{folder}", "--limit", 5, "-o", tmp_path / "results")
    assert (done.exit_code, "Traceback" in done.output) == (1, False)
    assert f"Error: encoder:{folder}: pairwise-sts: not enough memory (" in done.stderr
    assert done.stderr.rstrip().endswith("--quantise, or another --device")


def test_other_commands_that_run_models(tmp_path, fault):
    causal = f"causal:{make_model(tmp_path / 'm', n_positions=4096)}"
    encoder = f"encoder:{bert_folder(tmp_path / 'e')}"
    fault(FAULT)
    calls = {
        causal: [
            (
                judge,
                [TUPLES, "--dialogues", DIALOGUES, "--model", causal, "-o", tmp_path / "j.csv"],
            ),
            (answers, ["csts-sample", "--model", causal, "-o", tmp_path / "a.csv"]),
            (evaluate, [causal, "--task", "csts-prompt", "--limit", 2, "-o", tmp_path / "r"]),
        ],
        encoder: [
            (
                evaluate,
                [encoder, "--task", "evalrank-sentence", "--limit", 9, "-o", tmp_path / "r"],
            ),
            (evaluate, [encoder, "--task", "csts", "--limit", 2, "-o", tmp_path / "r"]),
        ],
    }
    for name, of_model in calls.items():
        for command, arguments in of_model:
            done = CliRunner().invoke(command, [*map(str, arguments)])
            assert done.exit_code == 2, done.output
            assert LINE.format(name) in done.stderr, command.name
            assert "Traceback" not in done.output


def test_objects_and_functions_keep_the_cause():
    def encode(texts):
        raise KeyError("a")

    class Encoder:
        def encode(self, texts):
            raise ZeroDivisionError("division by zero.")

    class Undeclared:
        """Has the abilities of a model, but no base class."""

        name = "undeclared"
        identity = {"revision": "1"}  # noqa: RUF012
        pair_scores = staticmethod(lambda left, right, progress: encode(left))
        environment = dict

    data = read_benchmark("giccs-sample").first(5)
    cases = {
        encode: "encode: cannot process the inputs (KeyError: 'a')",
        Encoder(): "Encoder: cannot process the inputs (ZeroDivisionError: division by zero)",
        lambda left, right: encode(left): "<lambda>: cannot process the inputs (KeyError: 'a')",
        Undeclared(): "undeclared: cannot process the inputs (KeyError: 'a')",
    }
    for model, message in cases.items():
        with pytest.raises(giccs.InputError) as caught:
            giccs.evaluate(model, data, "pairwise-sts")
        assert str(caught.value).startswith(f"{message}; it may require inputs")
        assert type(caught.value.__cause__) in (KeyError, ZeroDivisionError)


def test_a_loaded_sentence_transformer(tmp_path, fault):
    own = library.SentenceTransformer(str(bert_folder(tmp_path / "m")), device="cpu")
    fault(FAULT)
    data = read_benchmark("giccs-sample").first(5)
    with pytest.raises(giccs.InputError, match="index out of range in self") as caught:
        giccs.evaluate(own, data, "pairwise-sts", name="mine")
    assert (str(caught.value), caught.value.__cause__) == (LINE.format("mine"), FAULT)


def test_a_chat_template_that_refuses(tmp_path):
    folder = make_model(tmp_path)
    template = "{{ raise_exception('Only user and assistant roles are supported!') }}"
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(
        giccs.InputError, match=r"TemplateError: Only user.*; omit --chat-template; see"
    ):
        open_model(f"causal:{folder}").render_chat("Hallo")


def test_a_router_without_a_default_route(tmp_path):
    """Its towers need to know the side of each text."""
    from sentence_transformers import models as parts
    from sentence_transformers.sentence_transformer.modules import Router

    base = parts.Transformer(str(bert_folder(tmp_path / "base")))
    router = Router.for_query_document(
        [parts.Dense(16, 8)], [parts.Dense(16, 8)], default_route=None, allow_empty_key=False
    )
    model = library.SentenceTransformer(modules=[base, parts.Pooling(16, "mean"), router])
    data = read_benchmark("giccs-sample").first(5)
    with pytest.raises(giccs.InputError) as caught:
        giccs.evaluate(model, data, "pairwise-sts", name="towers")
    (line,) = str(caught.value).splitlines()
    assert line == (
        "towers: has the routes query, document and no default route; "
        "expected one or two, as in --prompt 'query' or 'query||document'"
    )


def test_the_traceback_is_logged(tmp_path, fault, caplog):
    model = open_model(f"encoder:{bert_folder(tmp_path)}", ModelOptions(batch_size=1))
    fault(FAULT)
    with caplog.at_level(logging.DEBUG, "giccs"), pytest.raises(giccs.InputError):
        model.pair_scores(["a"], ["b"], silent)
    assert any(record.exc_info and record.exc_info[1] is FAULT for record in caplog.records)
