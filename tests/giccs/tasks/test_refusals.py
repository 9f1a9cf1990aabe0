"""Every kind of model before every task: those that it cannot do are refused, and what is advised works."""

import re

import pytest
from click.testing import CliRunner

from giccs.cli.evaluation import evaluate
from giccs.csts.answer_generation import AnswerGenerator
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TASKS, TaskOptions, open_tasks

from ..causal_models import GERMAN, make_model, torch, transformers
from ..model_kinds import open_each_kind

ABILITIES = {
    "baseline": {"compares"},
    "encoder": {"compares", "embeds"},
    "static": {"compares", "embeds"},
    "package": {"compares", "embeds"},
    "causal": {"chooses", "writes"},
    "gguf": {"chooses", "writes"},
    "completions": {"chooses"},
    "embeddings": {"compares", "embeds"},
    "seq2seq": {"writes"},
    "chat": {"chooses", "writes"},
}
NEEDS = {
    "pairwise-sts": "compares",
    "multiple-choice-sts": "chooses",
    "csts": "compares",
    "csts-prompt": "writes",
    "evalrank-sentence": "embeds",
    "evalrank-word": "embeds",
    "word-similarity": "compares",
    "sentence-similarity": "compares",
    "classification": "embeds",
    "uniformity": "embeds",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory, plain_encoder, tiny_gpt):
    """Kind -> a model of it, opened by its name; nothing is loaded."""
    return open_each_kind(tmp_path_factory.mktemp("models"), plain_encoder, tiny_gpt)


def advised(reason, models):
    """Return the models that a sentence tells to take, of those that it names by their kinds."""
    if own := re.search(r"use (\S+) for the mean", reason):
        return [open_model(own[1])]
    return [models[kind] for kind in re.findall(rf"\b({'|'.join(models)}):", reason)]


def test_every_task_is_here():
    assert NEEDS.keys() == TASKS.keys()


@pytest.mark.parametrize("kind", ABILITIES)
@pytest.mark.parametrize("name", NEEDS)
def test_what_a_model_cannot_do_is_refused_and_what_is_advised_can(models, name, kind):
    task = open_tasks(name)[0]
    reason = task.refuses(models[kind])
    assert bool(reason) == (NEEDS[name] not in ABILITIES[kind])
    if reason:
        assert name in reason
        others = advised(reason, models)
        assert others
        assert [task.refuses(other) for other in others] == [""] * len(others)


def test_only_a_causal_model_of_transformers_can_be_an_encoder_as_well(models, tiny_gpt):
    (task,) = open_tasks("uniformity")
    told = {kind: "hidden states" in task.refuses(model) for kind, model in models.items()}
    assert {kind for kind, message in told.items() if message} == {"causal"}
    assert f"use encoder:{tiny_gpt} for" in task.refuses(models["causal"])


@pytest.mark.parametrize(
    ("architecture", "tokenizer"), [("gpt2", "bytes"), ("gpt2", "merging"), ("llama", "pieces")]
)
def test_the_encoder_that_is_advised_gives_the_mean_of_hidden_states(
    tmp_path, architecture, tokenizer
):
    """They have no token to pad with, one of them no special one at all; texts go together all the same."""
    causal = open_model(str(make_model(tmp_path, architecture, tokenizer)))
    (task,) = open_tasks("uniformity")
    (encoder,) = advised(task.refuses(causal), {})
    result = encoder.vectors(GERMAN, silent)
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()
    for text, vector in zip(GERMAN, result, strict=True):
        with torch.no_grad():
            states = model(**reader(text, return_tensors="pt")).last_hidden_state[0]
        assert vector == pytest.approx(states.mean(dim=0).numpy(), abs=1e-5)


def test_vectors_are_needed_by_some_ways_of_asking(models):
    (tri,) = open_tasks("csts", TaskOptions(encoding="tri"))
    assert tri.refuses(models["encoder"]) == ""
    assert "returns no vectors; csts --encoding tri requires an encoder" in tri.refuses(
        models["baseline"]
    )
    (distance,) = open_tasks("sentence-similarity", TaskOptions(similarity="l2"))
    assert distance.refuses(models["static"]) == ""
    assert "use --similarity cos" in distance.refuses(models["baseline"])
    assert "--similarity cos" not in distance.refuses(models["chat"])


def test_a_chat_template_that_lies_with_the_server_is_refused(models):
    for name, kind in (("multiple-choice-sts", "completions"), ("csts-prompt", "chat")):
        (task,) = open_tasks(name, TaskOptions(chat_template=True))
        assert task.refuses(models["causal"]) == ""
        assert "omit --chat-template" in task.refuses(models[kind])


def test_answering_is_for_those_that_write(models):
    reasons = {kind: AnswerGenerator(model).refuses() for kind, model in models.items()}
    assert {kind for kind, reason in reasons.items() if not reason} == {
        kind for kind, own in ABILITIES.items() if "writes" in own
    }


def test_a_model_that_can_do_none_of_the_usual_tasks_is_refused_by_the_command(models, tmp_path):
    """With no --task, a model does what it can; doing nothing is not silent."""
    pytest.importorskip("openai")
    name = models["seq2seq"].name
    call = ["baseline:chance", name, "--limit", "2"]
    done = CliRunner().invoke(evaluate, [*call, "-o", str(tmp_path / "results")])
    assert done.exit_code == 2
    assert f"{name}: does not compare texts; pairwise-sts requires an encoder" in done.stderr
    assert f"{name}: returns no likelihoods; multiple-choice-sts requires a causal" in done.stderr
    assert "baseline:chance" not in done.stderr
    assert not (tmp_path / "results").exists()
