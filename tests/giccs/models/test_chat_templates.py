"""Prompts of chat templates have the tokens that transformers gives them, in every family of models.

The templates have the form of the family, for one user message. Tokenizers follow the family's convention of
special tokens: which are added before and after a text, and which are left to the template.
"""

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.csts.prompting import Prompting
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.models.abilities import Prompt
from giccs.models.causal.tokens import Boundary
from giccs.models.loading import Loaded
from giccs.tasks.multiple_choice import MultipleChoice
from giccs_app.judging.cli import judge
from tests.nightly import others_nightly

from ..deferred import Deferred
from ..judging.test_judging import DIALOGUES, TUPLES

torch = Deferred("torch")
transformers = Deferred("transformers")

TEXT = "Ja oder nein?\n\nAntwort:"
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FAMILIES = {
    # Name -> template, tokens before a text, tokens after it, names of special tokens.
    "llama-2": ("{{ bos_token }}[INST] {{ messages[0].content }} [/INST]", "<s>", "", "<s>", "</s>"),
    "llama-3": (
        "{{ bos_token }}<|start_header_id|>user<|end_header_id|>\n\n{{ messages[0].content | trim }}"
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|begin_of_text|>", "", "<|begin_of_text|>", "<|eot_id|>",
    ),
    "qwen (ChatML, no BOS)": (CHATML, "", "", None, "<|im_end|>"),
    "smollm (ChatML, BOS of the tokenizer only)": (
        CHATML, "<|im_start|>", "", "<|im_start|>", "<|im_end|>",
    ),
    "mistral (BOS and EOS around a text)": (
        "{{ bos_token }}[INST]{{ messages[0].content }}[/INST]", "<s>", "</s>", "<s>", "</s>",
    ),
    "gemma": (
        "{{ bos_token }}<start_of_turn>user\n{{ messages[0].content | trim }}<end_of_turn>\n"
        "<start_of_turn>model\n",
        "<bos>", "", "<bos>", "<end_of_turn>",
    ),
    "phi-3 (BOS of the tokenizer only)": (
        "<|user|>\n{{ messages[0].content }}<|end|>\n<|assistant|>\n", "<s>", "", "<s>", "<|end|>",
    ),
    "zephyr (BOS of the tokenizer only)": (
        "<|user|>\n{{ messages[0].content }}{{ eos_token }}\n<|assistant|>\n", "<s>", "", "<s>", "</s>",
    ),
    "chatglm4 (two tokens, no BOS)": (
        "[gMASK]<sop><|user|>\n{{ messages[0].content }}<|assistant|>", "[gMASK] <sop>", "", None,
        "<|endoftext|>",
    ),
    "glm (two tokens of the tokenizer only)": (
        "<|user|>\n{{ messages[0].content }}<|assistant|>", "[gMASK] <sop>", "", None, "<|endoftext|>",
    ),
    "deepseek": (
        "{{ bos_token }}User: {{ messages[0].content }}\n\nAssistant:", "<|begin_of_sentence|>", "",
        "<|begin_of_sentence|>", "<|end_of_sentence|>",
    ),
    "command-r": (
        "{{ bos_token }}<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{{ messages[0].content }}"
        "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        "<BOS_TOKEN>", "", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>",
    ),
    "vicuna (text only, BOS of the tokenizer)": (
        "A chat with an assistant. USER: {{ messages[0].content }} ASSISTANT:", "<s>", "", "<s>", "</s>",
    ),
    "nllb-like (BOS and a language)": (
        "{{ bos_token }}<deu>{{ messages[0].content }}", "<s> <deu>", "</s>", "<s>", "</s>",
    ),
    "no header (the text itself is first)": (
        "{{ messages[0].content }}<|end|>", "<s>", "", "<s>", "<|end|>",
    ),
}  # fmt: skip
SPECIAL = sorted(
    {
        "<s>", "</s>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
        "<|im_start|>", "<|im_end|>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<|user|>",
        "<|assistant|>", "<|end|>", "[gMASK]", "<sop>", "<|endoftext|>", "<|begin_of_sentence|>",
        "<|end_of_sentence|>", "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<deu>",
    }
)  # fmt: skip


def bytes_with(before, after, begin, end, template):
    """Return a tokenizer of bytes that adds special tokens around a text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    letters = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    ids = {letter: n for n, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(ids, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    if around := [*before.split(), *after.split()]:
        tokenizer.post_processor = processors.TemplateProcessing(
            f"{before} $A {after}".strip(), special_tokens=[(token, ids[token]) for token in around]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=begin, eos_token=end, chat_template=template
    )


def llama_style(template):
    """Return a tokenizer whose BOS token is added by ``add_bos_token``, beside its mark of a word."""
    signs = "abcdefghijklmnopqrstuvwxyzJA[]/INST:? \n"
    words = ["<unk>", "<s>", "</s>", "▁", *dict.fromkeys(signs)]
    return transformers.LlamaTokenizer(
        vocab={word: n for n, word in enumerate(words)}, merges=[], add_bos_token=True,
        chat_template=template,
    )  # fmt: skip


def tokenizer_of(family):
    if family.startswith("add_bos_token"):
        return llama_style(FAMILIES["llama-2" if "with" in family else VICUNA][0])
    template, before, after, begin, end = FAMILIES[family]
    return bytes_with(before, after, begin, end, template)


VICUNA = "vicuna (text only, BOS of the tokenizer)"
ALL = [*FAMILIES, "add_bos_token, template with BOS", "add_bos_token, template of text"]


def expected_ids(tokenizer, text):
    """Return what transformers makes of a user message."""
    message = [{"role": "user", "content": text}]
    return tokenizer.apply_chat_template(
        message, add_generation_prompt=True, tokenize=True, return_dict=False
    )


@pytest.mark.parametrize("family", ALL)
def test_chat_prompts_have_the_tokens_of_transformers(family):
    tokenizer = tokenizer_of(family)
    boundary = Boundary(tokenizer)
    rendered = boundary.chat(TEXT)
    expected = expected_ids(tokenizer, TEXT)
    assert list(boundary.prompt(rendered)) == expected
    options = (" Ja", " Nein")
    prompt = rendered.rstrip()  # As the renderer of questions; the options get the white space.
    question = boundary.encode(prompt, options)
    for option, ids in zip(options, question.ids, strict=True):
        whole = tokenizer(prompt + option, add_special_tokens=False)["input_ids"]
        assert list(ids) == whole
        assert list(ids[: question.start]) == expected[: question.start]
    assert question.start == len(tokenizer(prompt, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("family", ALL)
def test_other_prompts_have_the_tokens_of_the_tokenizer_before_them_only(family):
    """Also one that writes them itself, and nothing after the text, whose continuation is scored."""
    tokenizer = tokenizer_of(family)
    boundary = Boundary(tokenizer)
    with_special, plain = tokenizer(TEXT)["input_ids"], tokenizer(TEXT, add_special_tokens=False)
    plain = plain["input_ids"]
    before = with_special[: next(n for n in range(9) if with_special[n : n + len(plain)] == plain)]
    assert list(boundary.prompt(TEXT)) == [*before, *plain]
    question = boundary.encode(TEXT, (" Ja",))
    assert list(question.ids[0][: question.start]) == [*before, *plain]
    if before and not family.startswith("add_bos_token"):
        written = "".join(tokenizer.convert_ids_to_tokens(before)) + TEXT
        assert list(boundary.prompt(written)) == [*before, *plain]
        assert list(boundary.prompt(written.replace("Ja", "Na"))[: len(before)]) == before


def test_tokens_written_as_text_are_not_special():
    """Compared are tokens, not text: here, the tokenizer reads the name of its BOS token as letters."""
    tokenizer = tokenizer_of("llama-2")
    tokenizer.split_special_tokens = True
    ids = Boundary(tokenizer).prompt("<s> steht hier")
    assert ids[0] == tokenizer.bos_token_id
    assert tokenizer.bos_token_id not in ids[1:]


@pytest.fixture
def seen(monkeypatch):
    """Record the inputs of all forward passes of a model, as tuples of ids."""
    inputs = []
    forward = torch.nn.Embedding.forward

    def record(self, ids):
        if self.num_embeddings < 1000:  # Tokens, not positions.
            inputs.extend(tuple(row) for row in ids.tolist())
        return forward(self, ids)

    monkeypatch.setattr("torch.nn.Embedding.forward", record)
    return inputs


def model_folder(folder, family):
    tokenizer = tokenizer_of(family)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=8192,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, initializer_range=0.3,
    )  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


USED = ["chatglm4 (two tokens, no BOS)", "zephyr (BOS of the tokenizer only)", "llama-3"]


def check_beginnings(tokenizer, seen):
    """Every whole input begins as the template, once, after nothing but padding."""
    template_ids = expected_ids(tokenizer, "")
    first = next(n for n, token in enumerate(template_ids) if token >= len(SPECIAL))
    beginning = tuple(template_ids[:first])
    whole = [row for row in seen if beginning[0] in row and len(row) > first]  # Not single steps.
    assert beginning
    assert whole
    for row in whole:
        start = row.index(beginning[0])
        assert row[start : start + first] == beginning
        assert row.count(beginning[0]) == beginning.count(beginning[0])
        assert set(row[:start]) <= {tokenizer.eos_token_id}


@pytest.mark.parametrize("family", others_nightly(USED, USED[0]))
def test_scores_and_answers_read_these_tokens(family, tmp_path, seen):
    model = open_model(f"causal:{model_folder(tmp_path, family)}")
    tokenizer = tokenizer_of(family)
    rendered = model.render_chat(TEXT)
    model.respond([rendered], 1)
    assert tuple(expected_ids(tokenizer, TEXT)) in seen
    seen.clear()
    model.score([Prompt(rendered.rstrip(), ("A", "B"))])
    check_beginnings(tokenizer, seen)


@pytest.mark.parametrize("family", others_nightly(USED, USED[0]))
def test_questions_judgments_and_csts_prompts_begin_once(family, tmp_path, seen):
    folder = model_folder(tmp_path / "m", family)
    model, tokenizer = open_model(f"causal:{folder}"), tokenizer_of(family)
    data = read_benchmark("giccs-sample").first(1)
    for task in (
        MultipleChoice(histories=("without",), chat_template=True),
        MultipleChoice(
            histories=("without",), chat_template=True, choose_by="generation", max_tokens=1
        ),
    ):
        evaluate_task(task, model, data)
        check_beginnings(tokenizer, seen)
        seen.clear()
    task = Prompting("none", chat_template=True, resamples=2)
    evaluate_task(task, model, task.read("csts-sample").first(1))
    check_beginnings(tokenizer, seen)
    seen.clear()
    command = [
        TUPLES, "--data", DIALOGUES, "--model", f"causal:{folder}", "--chat-template", "--limit", "1",
        "--template", "bws-de-1", "-o", str(tmp_path / "judgments.csv"),
    ]  # fmt: skip
    done = CliRunner().invoke(judge, command)
    assert done.exit_code == 0, done.output
    check_beginnings(tokenizer, seen)


def test_loaded_models_have_the_same_tokens(tmp_path):
    """A model of transformers that is given with its tokenizer."""
    from giccs.models.objects import model_of_object

    folder = model_folder(tmp_path, USED[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    causal = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model = model_of_object((causal, tokenizer))
    assert isinstance(model._loaded, Loaded)
    rendered = model.render_chat(TEXT)
    assert list(model._boundary.prompt(rendered)) == expected_ids(tokenizer, TEXT)
