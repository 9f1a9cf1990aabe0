"""Five encoders with their settings have the numbers of mteb's own evaluation of the exported task.

mteb is not a dependency; without it, the tests are skipped. Its int8 is not compared, because it computes the
ranges of the two sides of a pair separately; `tests/giccs/models/test_encoder_settings.py` compares int8 with
sentence-transformers.
"""

import importlib.util
import warnings

import pytest

import giccs
from giccs.benchmark import read_benchmark
from giccs.evaluation.interop import mteb as interop
from giccs.evaluation.interop.metadata import read_provenance
from giccs.models.packaged import PACKAGES
from giccs.models.pooling import MODES

from ..models.test_encoder_settings import left_padded_gpt, prompted_encoder  # noqa: F401

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mteb") is None, reason="mteb is not installed"
)
ENCODERS = ["minilm", "plain_encoder", "static_encoder", "prompted_encoder", "left_padded_gpt"]
INSTRUCTION = "Identify semantically similar utterances: "


@pytest.fixture(scope="module")
def benchmark():
    return read_benchmark("giccs-sample").first(6)


@pytest.fixture(scope="module")
def task_class(benchmark, tmp_path_factory):
    """The exported task of mteb, without history."""
    folder = tmp_path_factory.mktemp("mteb")
    interop.export_task(benchmark, ["without"], folder, read_provenance(benchmark, language="de"))
    (module,) = folder.glob("*_pairwise.py")
    spec = importlib.util.spec_from_file_location("exported", module)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    return exported.TASKS[0]


@pytest.fixture(params=ENCODERS)
def folder(request):
    if request.param != "minilm":
        return request.getfixturevalue(request.param)
    return pytest.importorskip(PACKAGES["minilm"]).get_model_path()


def scores_of_mteb(folder, task, prompts=None, pooling=None, binary=False, **arguments):
    """Return the scores that mteb computes; prompts: by name of a task type or side."""
    import mteb
    from mteb.models import CompressionWrapper, SentenceTransformerEncoderWrapper
    from mteb.types import OutputDType
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", **arguments)
    model.default_prompt_name = None  # mteb selects prompts itself.
    if model.tokenizer is not None and hasattr(model.tokenizer, "padding_side"):
        model.tokenizer.padding_side = (
            "right"  # Padding at the start would change the positions of GPT-2.
        )
    if pooling and len(model) > 1:
        model[1] = type(model[1])(model[1].embedding_dimension, pooling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = SentenceTransformerEncoderWrapper(model, model_prompts=prompts)
        if binary:
            wrapped = CompressionWrapper(wrapped, OutputDType.BINARY)
        (result,) = mteb.evaluate(wrapped, [task], cache=None).task_results
    (scores,) = result.scores["test"]
    return scores


def rho(folder, benchmark, **settings):
    (result,) = giccs.evaluate(f"encoder:{folder}", benchmark, "pairwise-sts", **settings)
    return {name: result.metrics[name].value for name in ("spearman", "pearson")}


def same(scores, metrics, similarity="cosine"):
    expected = {name: scores[f"{similarity}_{name}"] for name in metrics}
    assert metrics == pytest.approx(expected, abs=1e-4)


def pooling_of(folder):
    """Mean pooling for plain encoders, which sentence-transformers may pool otherwise."""
    return None if (folder / "modules.json").is_file() else "mean"


def test_without_a_prompt(folder, benchmark, task_class):
    scores = scores_of_mteb(folder, task_class(), pooling=pooling_of(folder))
    same(scores, rho(folder, benchmark, prompt=("none",)))
    metrics = rho(folder, benchmark, prompt=("none",), similarity="l2")
    same(scores, metrics, "euclidean")


def test_with_an_instruction(folder, benchmark, task_class):
    scores = scores_of_mteb(
        folder, task_class(), {"STS": INSTRUCTION}, pooling_of(folder), truncate_dim=8
    )
    same(scores, rho(folder, benchmark, prompt=(f"sts={INSTRUCTION}",), dimensions=8))


def test_with_a_prompt_for_each_side(folder, benchmark, task_class):
    from mteb.types import PromptType

    class Sided(task_class):
        input1_prompt_type = PromptType.query
        input2_prompt_type = PromptType.document

    prompts = {"query": "query: ", "document": "passage: "}
    scores = scores_of_mteb(folder, Sided(), prompts, pooling_of(folder))
    same(scores, rho(folder, benchmark, prompt=("e5=query: ||passage: ",)))


def test_binary(folder, benchmark, task_class):
    scores = scores_of_mteb(folder, task_class(), pooling=pooling_of(folder), binary=True)
    settings = {"prompt": ("none",), "embeddings": "binary"}
    same(scores, rho(folder, benchmark, **settings, similarity="l2"), "euclidean")
    # Many cosines of binary vectors are equal, except for rounding in mteb, which changes their ranks.
    same(scores, {"pearson": rho(folder, benchmark, **settings)["pearson"]})


@pytest.mark.parametrize("pooling", MODES)
def test_pooling(pooling, benchmark, task_class, plain_encoder, left_padded_gpt):  # noqa: F811
    for folder in (plain_encoder, left_padded_gpt):
        scores = scores_of_mteb(folder, task_class(), pooling=MODES[pooling])
        same(scores, rho(folder, benchmark, pooling=pooling))
