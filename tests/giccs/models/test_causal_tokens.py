"""Where an option begins: tokenizers of every kind, prompts cut to fit, and options that are none."""

import pytest

from bws.base.problems import InputError
from giccs.models.abilities import Prompt
from giccs.models.causal import open_causal
from giccs.models.causal.tokens import Boundary, grow

from ..causal_models import GERMAN, TOKENIZERS, edit_json, make_model, naive

TEXT = GERMAN[0]


@pytest.mark.parametrize("tokenizer", ["bytes", "pieces"])
@pytest.mark.parametrize("text", [TEXT, TEXT + "  ", TEXT + " 😀", TEXT + "\n", "A"])
def test_boundaries_are_those_of_the_harness(tokenizer, text):
    """What lm-evaluation-harness does: the end's spaces go to the option, both are encoded together."""
    result = Boundary(TOKENIZERS[tokenizer]()).encode(text, [" Ja", "Nein", "\n\nÄh 😀"])
    encode = lambda one: TOKENIZERS[tokenizer]()(one)["input_ids"]  # noqa: E731
    wholes = [encode(text + option) for option in (" Ja", "Nein", "\n\nÄh 😀")]
    assert [list(ids) for ids in result.ids] == wholes
    context = encode(text.rstrip())
    assert result.start == len(context)
    assert all(whole[: result.start] == context for whole in wholes)


def test_a_tokenizer_that_merges_across_the_boundary():
    """``t`` and ``:`` are one token before a space: then the token that spans the boundary is scored, and
    for each option from the same place on, so that the likelihoods are those of the same text."""
    tokenizer = TOKENIZERS["merging"]()
    encode = lambda text: tokenizer(text)["input_ids"]  # noqa: E731
    text, options = "Frage: Welche Äuß", ("erung", "!", " Ja")
    alone, merged = encode(text), encode(text + options[0])
    assert merged[: len(alone)] != alone  # else this test would show nothing
    result = Boundary(tokenizer).encode(text, options)
    shared = next(n for n, (a, b) in enumerate(zip(alone, merged, strict=False)) if a != b)
    assert result.start == shared
    assert [list(ids) for ids in result.ids] == [encode(text + option) for option in options]
    assert {ids[:shared] for ids in result.ids} == {tuple(alone[:shared])}


def test_merged_options_compare_as_whole_texts(tmp_path):
    """The difference of two options is that of ln p(prompt and option), boundary or no boundary."""
    folder = make_model(tmp_path, tokenizer="merging")
    options = ("erung", "!", " Ja")
    (result,) = open_causal(str(folder)).score([Prompt("Frage: Welche Äuß", options)]).options
    (whole,) = naive_from_the_first_token(
        folder, ["Frage: Welche Äuß" + option for option in options]
    )
    assert [one.logprob - result[0].logprob for one in result] == pytest.approx(
        [ln - whole[0] for ln in whole], abs=1e-4
    )


def naive_from_the_first_token(folder, texts):
    first = texts[0][0]  # the same for all
    return [[ln for ln, _ in naive(folder, [Prompt(first, tuple(t[1:] for t in texts))])[0]]]


def test_a_token_behind_the_text_is_not_scored():
    """Some tokenizers close a text; the option's last token is its own."""
    opened = Boundary(TOKENIZERS["pieces"]()).encode(TEXT, [" Ja"])
    assert Boundary(TOKENIZERS["closing"]()).encode(TEXT, [" Ja"]) == opened


def test_an_empty_prompt_begins_with_the_token_of_a_beginning():
    pieces, plain = TOKENIZERS["pieces"](), TOKENIZERS["bytes"]()
    assert Boundary(pieces).encode("", ["Ja"]).ids[0][0] == pieces.bos_token_id
    result = Boundary(plain).encode(
        " ", ["Ja"]
    )  # as the harness: the end of a text, where none begins it
    assert (result.ids[0][0], result.start) == (plain.eos_token_id, 1)
    with pytest.raises(ValueError, match="the tokenizer has no beginning-of-sequence token"):
        Boundary(TOKENIZERS["merging"]()).encode("", ["Ja"])


def test_a_prompt_that_brings_its_own_beginning_gets_no_other():
    """Chat templates write the token as text."""
    pieces = TOKENIZERS["pieces"]()
    ids = Boundary(pieces).encode("<s>Hallo", [" Ja"]).ids[0]
    assert ids.count(pieces.bos_token_id) == 1


def test_a_tree_by_hand():
    r"""5 6 ┬ 7 (8)    three options, of which the first two are equal but for what is predicted; the third
    └ 9 9 (8)  parts from them after the prompt."""
    from giccs.models.causal.tokens import TokenQuestion

    tree = grow(TokenQuestion(((5, 6, 7, 8), (5, 6, 7, 4), (5, 6, 9, 9, 8)), start=2))
    assert tree.tokens.tolist() == [5, 6, 7, 9, 9]
    assert tree.depths.tolist() == [0, 1, 2, 2, 3]
    assert tree.visible().astype(int).tolist() == [
        [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1],
    ]  # fmt: skip
    assert tree.predictions[1] == ((1, 7), (2, 4))


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A model that reads 24 tokens."""
    return open_causal(str(make_model(tmp_path_factory.mktemp("short"), "llama", "pieces",
                                      max_position_embeddings=24)))  # fmt: skip


def test_the_first_text_that_fits_with_its_longest_option_is_taken(tmp_path):
    """To the brim: an option's last token is predicted and need not fit; with one token less it does not."""
    words, option = TEXT.split(), " Ja, heute"
    texts = [" ".join(words[n:]) for n in range(len(words))]
    needed = [len(TOKENIZERS["pieces"]()(text + option)["input_ids"]) - 1 for text in texts]
    for context, fitting in ((needed[3], 3), (needed[3] - 1, 4)):
        folder = make_model(
            tmp_path / str(context), "llama", "pieces", max_position_embeddings=context
        )
        model = open_causal(str(folder))
        assert model.context == context
        prompts = [Prompt(texts[0], (" Ja", option), tuple(texts[1:])), Prompt("Ja", (" Ja",))]
        result = model.score(prompts)
        assert result.prompts == (texts[fitting], "Ja")
        assert result.cut == 1
        whole = model.score([Prompt(texts[fitting], (" Ja", option)), prompts[1]])
        assert whole.cut == 0
        assert [one.logprob for one in result.options[0]] == pytest.approx(
            [one.logprob for one in whole.options[0]], abs=1e-4
        )


def test_all_prompts_that_fit_in_no_way_are_named(short):
    long = " ".join(GERMAN)
    with pytest.raises(InputError) as caught:
        short.score(
            [Prompt("Ja", (" Ja",)), Prompt(long, (" Ja",)), Prompt(long, (" Ja",), (TEXT,))]
        )
    first, second = map(str, caught.value.problems)
    assert "prompt 2: has " in first
    assert "tokens in its shortest form; the maximum is 24" in first
    assert "prompt 3: has " in second


def test_options_that_are_none(short):
    with pytest.raises(InputError) as caught:
        short.score([Prompt(TEXT, ()), Prompt(TEXT, (" Ja", "")), Prompt(TEXT, (" ", " Ja"))])
    assert [str(problem).split(": ", 1)[1] for problem in caught.value.problems] == [
        "prompt 1 has no options; expected at least one",
        "prompt 2 has the empty option ''; expected text",
        "prompt 3 has the empty option ' '; expected text",
    ]


def test_a_tokenizer_that_belongs_to_another_model(tmp_path):
    folder = make_model(tmp_path, vocab_size=300)
    with pytest.raises(
        InputError,
        match=r"the tokenizer has token \d+, but the vocabulary of the model "
        r"has 300",
    ):
        open_causal(str(folder)).score([Prompt(" ".join(GERMAN), (" Ja",))])


def test_chat_templates(tmp_path):
    folder = make_model(tmp_path, "llama", "pieces")
    with pytest.raises(InputError, match="has no chat template; omit --chat-template"):
        open_causal(str(folder)).render_chat("Hallo")
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[bot]"
    )
    edit_json(folder / "tokenizer_config.json", chat_template=template)
    model = open_causal(str(folder))
    rendered = model.render_chat("Hallo")
    assert rendered == "<s>[user] Hallo\n[bot]"
    result = model._boundary.encode(rendered, [" Ja"])
    assert result.ids[0][0] == 1
    assert result.ids[0].count(1) == 1
