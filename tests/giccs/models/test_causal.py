"""Likelihoods of options: every architecture and every way through it against the plainest scorer."""

import random

import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import OptionScore, Prompt
from giccs.models.causal import open_causal
from giccs.models.causal.forward import WIDTHS, TreePass, bucket_width
from giccs.models.causal.tokens import grow, shared
from tests.nightly import others_nightly

from ..causal_models import CONFIGS, GERMAN, make_model, naive, torch, transformers

PROMPTS = [
    Prompt(
        " ".join(GERMAN[:n]),
        (" Ja", " Ja, heute", " Ja, heute einen Tisch", "\nZehn Minuten 😀 zu Fuß", " Ja", "!"),
    )
    for n in (1, 2, 3)
]
WAYS = {
    "gemma2": "token tree, windowed in some layers", "gemma3": "token tree, windowed in some layers",
    "mistral": "token tree, windowed", "bloom": "shared cache", "gpt-neo": "shared cache",
    "mamba": "one by one",
}  # fmt: skip


def flat(scored):
    return [option.logprob for options in scored.options for option in options]


def score(folder, prompts=PROMPTS, **options):
    return open_causal(str(folder), options=ModelOptions(**options)).score(prompts)


def expected(folder, prompts):
    return [ln for options in naive(folder, prompts) for ln, _ in options]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("gpt2"))


@pytest.mark.parametrize(
    "architecture", others_nightly(CONFIGS, "gpt2", "llama", "gemma3", "mistral", "bloom", "mamba")
)
def test_every_architecture_gives_what_it_gives_for_an_option_by_itself(architecture, tmp_path):
    """Windows (24 tokens) are shorter than the prompts, logits capped or scaled where that is the custom."""
    folder = make_model(tmp_path, architecture)
    model = open_causal(str(folder))
    result = model.score(PROMPTS)
    expected = naive(folder, PROMPTS)
    assert flat(result) == pytest.approx([ln for q in expected for ln, _ in q], abs=1e-4)
    for options, wanted in zip(result.options, expected, strict=True):
        assert [option.tokens for option in options] == [tokens for _, tokens in wanted]
        chosen = [max(range(len(options)), key=lambda n, o=ln: o[n]) for ln in (
            [option.logprob for option in options], [ln for ln, _ in wanted])]  # fmt: skip
        assert chosen[0] == chosen[1]
    assert model.environment()["forward"] == WAYS.get(architecture, "token tree")
    assert model.environment()["self_check_deviation"] < 1e-4


def test_a_window_is_no_matter_until_a_prompt_is_longer(tmp_path):
    """The self-check is made again for a larger question: the way that was right before is no more."""
    folder = make_model(tmp_path, "gpt-neo", window_size=64)
    short, long = (
        Prompt(text, (" Ja, heute nicht", " Nein, danke")) for text in ("Ja", " ".join(GERMAN))
    )
    model = open_causal(str(folder))
    model.score([short])
    assert model.environment()["forward"] == "token tree"
    result = model.score([short, long])
    assert model.environment()["forward"] == "shared cache"
    assert flat(result) == pytest.approx(expected(folder, [short, long]), abs=1e-4)


def test_the_longest_option_need_not_be_in_the_largest_tree(tmp_path):
    """A window of 24 tokens shows in the second question alone, whose tree is the smaller one."""
    folder = make_model(tmp_path, "gpt-neo")
    wide = Prompt("Ja", tuple(f" {a}{b}" for a in "ABCDEFGHIJ" for b in "klmnop"))
    deep = Prompt(GERMAN[0], (" Ja",))
    assert flat(score(folder, [wide, deep])) == pytest.approx(
        expected(folder, [wide, deep]), abs=1e-4
    )


def many(questions, seed=0):
    draw = random.Random(seed)
    words = " ".join(GERMAN).split()
    text = lambda least, most: " ".join(draw.choices(words, k=draw.randint(least, most)))  # noqa: E731
    return [
        Prompt(text(3, 20), tuple(f" {text(1, 5)}" for _ in range(draw.randint(2, 6))))
        for _ in range(questions)
    ]


@pytest.mark.parametrize("architecture", others_nightly(["gpt2", "gemma3", "bloom"], "gemma3"))
def test_neither_batch_nor_order_nor_company_changes_a_number(architecture, tmp_path):
    folder = make_model(tmp_path, architecture)
    prompts = many(12)
    alone = [flat(score(folder, [prompt])) for prompt in prompts]
    for size in (None, 1, 2, 5):
        together = score(folder, prompts, batch_size=size)
        backwards = score(folder, prompts[::-1], batch_size=size)
        for n, expected in enumerate(alone):
            for options in (together.options[n], backwards.options[-1 - n]):
                assert [option.logprob for option in options] == pytest.approx(expected, abs=1e-4)


def test_options_in_another_order_have_the_same_numbers(gpt2):
    prompt = PROMPTS[2]
    there, back = (
        score(gpt2, [Prompt(prompt.text, options)]).options[0]
        for options in (prompt.options, prompt.options[::-1])
    )
    assert [one.logprob for one in back[::-1]] == pytest.approx(
        [one.logprob for one in there], abs=1e-4
    )


def test_what_is_shared_is_read_once(gpt2):
    """Prompts equal in all share a pass; equal options and equal beginnings share their tokens."""
    model = open_causal(str(gpt2))
    model.score(PROMPTS)  # loaded, checked
    read = []
    decoder = model._loaded.model.get_decoder()
    hook = lambda module, args, kwargs: read.append(kwargs["input_ids"].numel())  # noqa: E731
    decoder.register_forward_pre_hook(hook, with_kwargs=True)
    tokens = lambda text: len(model._loaded.tokenizer(text)["input_ids"])  # noqa: E731
    prompt = Prompt("Ich möchte", (" heute", " heute einen Tisch", " heute", " Ja"))
    result = model.score([prompt, prompt, prompt])
    # the longest option holds the shorter one's only token; what comes last is predicted, not read
    assert read == [tokens("Ich möchte heute einen Tisch") - 1 + tokens(" Ja") - 1]
    assert result.options[0] == result.options[1] == result.options[2]
    assert result.options[0][0] == result.options[0][2]


def test_adjacent_prompts_with_a_long_common_beginning_share_it(gpt2):
    """Two questions after the same text, as of a judge; in half precision each is read by itself."""
    text = " ".join(GERMAN)
    first, second = (
        Prompt(f"{text} {question}", (" Ja", " Nein, heute nicht"))
        for question in ("Am besten?", "Am schlechtesten?")
    )
    other = Prompt("Ich möchte", (" heute", " einen Tisch"))
    prompts = [first, second, other]
    n_read = {}
    for dtype in ("float32", "bfloat16"):
        model = open_causal(str(gpt2), options=ModelOptions(dtype=dtype, batch_size=1))
        model.score(prompts)  # Loaded and checked.
        read = []
        hook = lambda module, args, kwargs, read=read: read.append(kwargs["input_ids"].numel())  # noqa: E731
        model._loaded.model.get_decoder().register_forward_pre_hook(hook, with_kwargs=True)
        result = model.score(prompts)
        n_read[dtype] = sum(read)
        if dtype == "float32":
            assert flat(result) == pytest.approx(expected(gpt2, prompts), abs=1e-4)
            assert flat(model.score([first, other, second])) == pytest.approx(
                [flat(result)[n] for n in (0, 1, 4, 5, 2, 3)], abs=1e-4
            )
        else:
            alone = [ln for p in prompts for ln in flat(score(gpt2, [p], dtype=dtype))]
            assert flat(result) == alone  # to the last bit
    trees = [grow(model._boundary.encode(p.text, p.options)) for p in prompts]
    assert n_read["bfloat16"] == sum(map(len, trees))
    common = shared(trees[0].question.ids[0], trees[1].question.ids[0])
    assert common > 10
    assert n_read["float32"] == n_read["bfloat16"] - common

    model = open_causal(str(gpt2), options=ModelOptions(dtype="bfloat16"))
    model._scorer._questions = None  # as on a GPU
    totals = []
    watched = lambda work, label, total: (totals.append(total), work)[1]  # noqa: E731
    assert flat(model.score(prompts, watched)) == pytest.approx(alone, abs=0.25)
    assert totals == [2]  # passes before batching: one for the two questions after the same text


def test_tokens_and_bytes_of_an_option(gpt2):
    """Bytes are those of the text without the space before it: ä and ß have two, the smile has four."""
    (options,) = score(gpt2, [Prompt("Antwort:", (" Ja", " Fuß", "\nspät 😀"))]).options
    assert [option.bytes for option in options] == [2, 4, 5 + 1 + 4]
    assert all(option.tokens >= 1 and option.logprob < 0 for option in options)


def test_half_precision_is_close_and_does_not_depend_on_neighbours(gpt2):
    exact = flat(score(gpt2))
    for dtype, near in (("bfloat16", 0.6), ("float16", 0.06)):
        model = open_causal(str(gpt2), options=ModelOptions(dtype=dtype))
        result = flat(model.score(PROMPTS))
        assert model.environment()["forward"] == "token tree"
        assert model.identity["dtype"] == dtype
        assert result == pytest.approx(exact, abs=near)
        assert result != pytest.approx(exact, abs=1e-6)
        alone = [ln for prompt in PROMPTS[::-1] for ln in flat(score(gpt2, [prompt], dtype=dtype))]
        assert sorted(alone) == sorted(result)  # to the last bit


def test_a_prompt_of_ten_thousand_tokens(tmp_path):
    folder = make_model(tmp_path, "llama", max_position_embeddings=16384, num_hidden_layers=1)
    prompt = Prompt(" ".join(GERMAN * 140), (" Ja", " Nein, heute nicht"))
    model = open_causal(str(folder))
    result = model.score([prompt])
    assert model._boundary.encode(prompt.text, prompt.options).start > 10_000
    assert flat(result) == pytest.approx([ln for ln, _ in naive(folder, [prompt])[0]], abs=1e-3)


def test_a_pass_that_does_not_fit_is_halved(gpt2, monkeypatch):
    """Memory ends, as far as the scorer can tell, at more than two questions."""
    from giccs.models.causal.forward import TreePass

    expected = flat(score(gpt2, many(7)))
    sizes = []
    whole = TreePass.__call__

    def limited(self, trees):
        sizes.append(len(trees))
        if len(trees) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return whole(self, trees)

    monkeypatch.setattr(TreePass, "__call__", limited)
    assert flat(score(gpt2, many(7))) == pytest.approx(expected, abs=1e-4)
    assert max(sizes) > 2
    assert sizes[-1] <= 2


def passes(model):
    """Return the (rows, tokens) of each pass through the decoder of a model, as they are made."""
    shapes = []
    decoder = model._loaded.model.get_decoder()
    forward = decoder.forward

    def recorded(*values, **inputs):
        shapes.append(tuple((values[0] if values else inputs["input_ids"]).shape))
        return forward(*values, **inputs)

    decoder.forward = recorded
    return shapes


def test_bucket_widths_change_no_number(gpt2, monkeypatch):
    prompts = many(60)
    exact = flat(score(gpt2, prompts))
    monkeypatch.setitem(WIDTHS, "cpu", bucket_width)
    model = open_causal(str(gpt2))
    shapes = passes(model)
    assert flat(model.score(prompts)) == pytest.approx(exact, abs=1e-4)
    widths = {width for _, width in shapes if width > 1}
    assert {width for rows, width in shapes if rows > 1} <= {64, 128, 192, 256}
    assert len(widths) < 12


def test_batches_in_half_precision_are_compared_with_questions_alone(gpt2, monkeypatch):
    prompts = many(40)
    alone = flat(score(gpt2, prompts, dtype="bfloat16"))
    model = open_causal(str(gpt2), options=ModelOptions(dtype="bfloat16"))
    model._scorer._questions = None  # as on a GPU
    together = model.score(prompts)
    assert flat(together) == pytest.approx(alone, abs=0.25)
    assert model.environment()["batch_size"] > 1
    assert 0 <= model.environment().get("batch_deviation", 0) < 0.25

    changed = open_causal(str(gpt2), options=ModelOptions(dtype="bfloat16"))
    changed._scorer._questions = None
    of_one = TreePass.__call__
    shift = lambda trees: 0.0 if len(trees) == 1 else 1.0  # noqa: E731
    monkeypatch.setattr(
        TreePass, "__call__",
        lambda self, trees: [[ln + shift(trees) for ln in answer] for answer in of_one(self, trees)],
    )  # fmt: skip
    assert flat(changed.score(prompts)) == alone
    assert changed.environment()["batch_size"] == 1


@pytest.mark.parametrize(
    ("readme", "licence"),
    [
        (None, None),
        ("---\nlanguage: de\nlicense: cc-by-sa-4.0\n---\n# Model", "cc-by-sa-4.0"),
        ("# Model\nlicense: mit", None),
        ("---\nlicense:\n- mit\n- apache-2.0\n---", None),
    ],
    ids=["no README", "stated", "in the text", "several"],
)
def test_results_state_the_size_and_the_licence_of_a_model(tmp_path, readme, licence):
    folder = make_model(tmp_path)
    if readme:
        (folder / "README.md").write_text(readme, encoding="utf-8")
    environment = open_causal(str(folder)).environment()
    expected = transformers.AutoModelForCausalLM.from_pretrained(folder).num_parameters()
    assert environment["parameters"] == expected
    assert environment.get("license") == licence


def test_a_pass_that_runs_out_of_memory_once_is_tried_again_and_then_reported(gpt2, monkeypatch):
    of_one, failures = TreePass.__call__, [2]

    def full(self, trees):
        if failures[0]:
            failures[0] -= 1
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return of_one(self, trees)

    monkeypatch.setattr(TreePass, "__call__", full)
    exact = expected(gpt2, PROMPTS)
    failures[0] = 1
    model = open_causal(str(gpt2))
    assert flat(model.score(PROMPTS)) == pytest.approx(exact, abs=1e-4)
    assert (model.environment()["forward"], "not_used" in model.environment()) == (
        "token tree",
        False,
    )
    failures[0] = 2
    model = open_causal(str(gpt2))
    assert flat(model.score(PROMPTS)) == pytest.approx(exact, abs=1e-4)
    assert model.environment()["forward"] == "shared cache"
    assert "CUDA out of memory" in model.environment()["not_used"]["token tree"]


def test_prompts_are_tokenised_in_one_call(gpt2):
    model = open_causal(str(gpt2))
    tokenizer, calls = model._boundary._tokenizer, []
    call = type(tokenizer).__call__

    class Counted:
        def __getattr__(self, name):
            return getattr(tokenizer, name)

        def __call__(self, texts, **settings):
            calls.append(len(texts))
            return call(tokenizer, texts, **settings)

    model._boundary._tokenizer = Counted()
    model.score(many(50))
    assert len([n for n in calls if n > 1]) == 1


def test_a_way_that_ends_in_an_error_or_in_other_numbers_is_not_taken(gpt2, monkeypatch):
    from giccs.models.causal import forward

    expected = flat(score(gpt2))
    blind = lambda model, visible, depths: forward.full_mask(model, visible | True, depths)  # noqa: E731
    monkeypatch.setattr(
        "giccs.models.causal.scoring.ways",
        lambda model: iter(
            [
                forward.TreePass(model, "blind", blind),
                forward.TreePass(model, "broken", lambda *_: 1 / 0),
                forward.SharedCache(model),
            ]
        ),
    )
    model = open_causal(str(gpt2))
    assert flat(model.score(PROMPTS)) == pytest.approx(expected, abs=1e-4)
    assert model.environment()["forward"] == "shared cache"


def test_a_model_that_looks_ahead_is_refused(tmp_path):
    """BERT with a language model's head, but not told to be a decoder, sees what it is to predict."""
    make_model(tmp_path)
    config = transformers.BertConfig(
        vocab_size=384, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, initializer_range=0.3,
    )  # fmt: skip
    transformers.BertLMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="attends to the tokens to be predicted"):
        score(tmp_path)


def test_numbers_that_are_none_are_not_passed_on(tmp_path):
    folder = make_model(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.transformer.ln_f.weight.fill_(float("nan"))
    model.save_pretrained(folder)
    with pytest.raises(InputError, match=r"returns NaN"):
        score(folder)


def test_no_prompts_no_scores(gpt2):
    result = score(gpt2, [])
    assert (result.prompts, result.options, result.cut) == ((), (), 0)


def test_a_model_is_the_same_by_every_name(gpt2):
    by_kind, by_configuration = (open_model(name) for name in (f"causal:{gpt2}", str(gpt2)))
    assert by_kind.identity == by_configuration.identity == open_causal(str(gpt2)).identity
    assert by_kind.identity["kind"] == "causal"
    assert by_kind.name == f"causal:{gpt2}"
    assert isinstance(by_kind.score(PROMPTS[:1]).options[0][0], OptionScore)
    assert open_model(f"encoder:{gpt2}").identity["kind"] == "encoder"
