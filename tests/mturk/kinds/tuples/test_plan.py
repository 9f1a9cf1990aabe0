"""Plans: each tuple once, short with long dialogues, deterministic, all problems reported."""

from collections import Counter
from dataclasses import replace
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.base.problems import InputError
from bws.design import fresh_rounds, make_tuples
from bws.files import read_items, read_tuples, write_tuples
from giccs.benchmark.assemble import read_dialogues
from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk import answers, limits
from mturk.kinds.tuples import KIND
from mturk.kinds.tuples.plan import plan, plan_notes
from mturk.study.settings import Settings
from mturk.study.settings_file import SettingsFile

DATA = resources.files("giccs.data")


@pytest.fixture(scope="module")
def sample():
    with resources.as_file(DATA) as folder:
        return read_tuples(folder / "tuples.csv"), read_dialogues(folder / "dialogues.jsonl")


@pytest.fixture(scope="module")
def hits(sample):
    return plan(*sample, Settings())


@pytest.fixture(scope="module")
def few(sample, tmp_path_factory):
    """A tuple of each dialogue of the sample."""
    header, *rows = (DATA / "tuples.csv").read_text("utf-8").splitlines()
    chosen = dict(zip((row.split(",")[1] for row in rows), rows, strict=True))
    path = tmp_path_factory.mktemp("few") / "tuples.csv"
    path.write_text("\n".join([header, *chosen.values()]), encoding="utf-8")
    return read_tuples(path), sample[1]


@pytest.fixture(scope="module")
def few_hits(few):
    hits = plan(*few, Settings())
    assert len(hits) == 30
    return hits


def dialogue(name, turns=3, candidates="abcd"):
    words = tuple(Turn("user", f"Satz {n} von {name}") for n in range(turns))
    items = tuple(Candidate(f"{name}-{c}", f"Vorschlag {c} zu {name}") for c in candidates)
    return Dialogue(name, "", "", words, items)


def tuples_of(tmp_path, rows):
    path = tmp_path / "tuples.csv"
    path.write_text("\n".join(["tuple_id,group,item1,item2,item3", *rows]), encoding="utf-8")
    return read_tuples(path)


def rows_for(dialogues, count):
    return [
        f"{dialogue.dialogue_id}.{n},{dialogue.dialogue_id},"
        + ",".join(c.utterance_id for c in (dialogue.candidates * 2)[n % 4 : n % 4 + 3])
        for dialogue in dialogues
        for n in range(count)
    ]


def test_sample_matches_study_of_paper(sample, hits):
    tuples, _ = sample
    assert len(hits) == 300
    assert {tuple(len(part.dialogue.turns) for part in hit.parts) for hit in hits} == {(3, 5)}
    asked = Counter(part.tuple_id for hit in hits for part in hit.parts)
    assert asked == Counter(tuples.ids)
    assert plan_notes(hits, Settings()) == []


def test_items_keep_order_of_tuple(sample, hits):
    rows = {tuple_id: (group, items) for tuple_id, group, items in sample[0].rows()}
    texts = {c.utterance_id: c.text for one in sample[1] for c in one.candidates}
    for part in (part for hit in hits for part in hit.parts):
        group, items = rows[part.tuple_id]
        assert part.dialogue.dialogue_id == group
        assert tuple(item.utterance_id for item in part.items) == items
        assert [item.text for item in part.items] == [texts[item] for item in items]


def test_expected_tuples_match_plan(hits):
    for hit in hits:
        assert [(e.tuple_id, e.group, e.items) for e in answers.expected_tuples(hit.question)] == [
            (p.tuple_id, p.dialogue.dialogue_id, tuple(i.utterance_id for i in p.items))
            for p in hit.parts
        ]


def test_numbers_annotations_and_tokens_are_unique(hits):
    assert [hit.number for hit in hits] == [*range(1, 301)]
    assert len({hit.token for hit in hits}) == len({hit.annotation for hit in hits}) == 300
    for hit in hits:
        limits.TOKEN.check(hit.token)
        limits.ANNOTATION.check(hit.annotation)
        limits.QUESTION.check(hit.question)


def test_plan_is_deterministic(few, few_hits):
    assert plan(*few, Settings()) == few_hits
    assert plan(few[0], [*reversed(few[1])], Settings()) == few_hits


def test_changeable_settings_do_not_change_tokens(few, few_hits):
    other = Settings(lifetime=60, spending_limit=Settings().reward, pseudonyms=False)
    assert plan(*few, other) == few_hits


def test_expected_seconds_change_only_their_own_statement_on_the_page(few, few_hits):
    other = plan(*few, Settings(expected_seconds=90))
    statement = 'name="giccs-expected-seconds" content="{}"'.format
    before, after = statement(Settings().expected_seconds), statement(90)
    assert other[0].question != few_hits[0].question
    assert other == [replace(hit, question=hit.question.replace(before, after)) for hit in few_hits]


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"language": "en"}, {"consent": "Wir"}, {"assignments": 6}, {"title": "Anders"}],
)
def test_other_study_has_other_tokens(few, few_hits, change):
    other = plan(*few, replace(Settings(), **change))
    assert not {hit.token for hit in other} & {hit.token for hit in few_hits}
    assert not {hit.annotation for hit in other} & {hit.annotation for hit in few_hits}


def test_other_round_has_same_questions_and_other_tokens(few, few_hits):
    again = plan(*few, Settings(), round_number=1)
    assert not {hit.token for hit in again} & {hit.token for hit in few_hits}
    assert not {hit.annotation for hit in again} & {hit.annotation for hit in few_hits}
    assert [hit.question for hit in again] == [hit.question for hit in few_hits]


def test_seed_changes_pages(sample, hits):
    def pairs(plans):
        return {tuple(part.tuple_id for part in hit.parts) for hit in plans}

    assert len(pairs(plan(*sample, Settings(seed=1))) & pairs(hits)) < 30


def test_remaining_tuples_form_short_hit(tmp_path):
    dialogues = [dialogue("d1"), dialogue("d2", turns=5)]
    tuples = tuples_of(tmp_path, [*rows_for(dialogues, 2), "x,d1,d1-a,d1-b,d1-c"])
    hits = plan(tuples, dialogues, Settings())
    assert [len(hit.parts) for hit in hits] == [2, 2, 1]
    assert [len(part.dialogue.turns) for part in hits[2].parts] == [3]
    assert plan_notes(hits, Settings())[0].endswith(
        "has 1 of 2 dialogues, because the tuples do not divide evenly"
    )


def test_dialogue_repeats_on_page_only_if_unavoidable(tmp_path):
    like = [dialogue(f"d{n}") for n in range(3)]
    hits = plan(tuples_of(tmp_path, rows_for(like, 4)), like, Settings())
    assert all(len({part.dialogue.dialogue_id for part in hit.parts}) == 2 for hit in hits)
    alone = plan(tuples_of(tmp_path, rows_for(like[:1], 4)), like, Settings())
    assert plan_notes(alone, Settings()) == ["2 of 2 HITs contain a dialogue more than once"]


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=12),
    size=st.integers(1, 4),
    seed=st.integers(0, 10),
)
@settings(max_examples=25, deadline=None)
def test_each_tuple_is_in_one_hit(lengths, size, seed):
    dialogues = [dialogue(f"d{n}", turns) for n, turns in enumerate(lengths)]
    items = [(c.utterance_id, d.dialogue_id) for d in dialogues for c in d.candidates]
    tuples = make_tuples([item for item, _ in items], 3, groups=[group for _, group in items])
    hits = plan(tuples, dialogues, Settings(seed=seed, dialogues_per_hit=size))
    asked = [part.tuple_id for hit in hits for part in hit.parts]
    assert sorted(asked) == sorted(tuples.ids)
    assert len(hits) == -(-len(tuples) // size)
    assert all(len(hit.parts) == size for hit in hits[:-1])


def test_all_problems_of_a_plan_are_reported(tmp_path):
    rows = ["t1,d1,d1-a,d1-b,d1-x", "t2,d9,a,b,c", "t3,,e,f,g"]
    with pytest.raises(InputError) as caught:
        plan(tuples_of(tmp_path, rows), [dialogue("d1")], Settings(), file="tuples.csv")
    assert [*map(str, caught.value.problems)] == [
        "tuples.csv: tuple 't1': item 'd1-x' is not a candidate of dialogue 'd1'; "
        "expected one of 'd1-a', 'd1-b', 'd1-c', 'd1-d'",
        "tuples.csv: tuple 't2': unknown group 'd9'; expected a dialogue_id of the dialogues file",
        "tuples.csv: tuple 't3': unknown group ''; expected a dialogue_id of the dialogues file",
    ]


def test_oversized_page_is_reported(tmp_path):
    long = replace(dialogue("d1"), turns=(Turn("user", "ü" * 33_000),))
    rows = rows_for([long], 1)
    with pytest.raises(
        InputError, match=r"HIT 1 \(tuples d1\.0\): Question has \d+ bytes; expected 1 to 65535"
    ):
        plan(tuples_of(tmp_path, rows), [long], Settings())


def test_settings_from_code_are_checked(tmp_path):
    one = dialogue("d1")
    with pytest.raises(InputError, match=r"Title has 129(.|\n)*LifetimeInSeconds is 1;"):
        plan(tuples_of(tmp_path, rows_for([one], 1)), [one], Settings(title="x" * 129, lifetime=1))


def test_ids_with_control_characters_are_refused(tmp_path):
    one = dialogue("d1", candidates=["a\x01", "b\x85b", "c\ufffe"])
    tuples = tuples_of(tmp_path, ["t1,d1,d1-a\x01,d1-b\x85b,d1-c\ufffe"])
    with pytest.raises(InputError) as caught:
        plan(tuples, [one], Settings())
    assert [str(problem).partition(" contains ")[0] for problem in caught.value.problems] == [
        "tuples: tuple 't1': the id 'd1-a\\x01'",
        "tuples: tuple 't1': the id 'd1-b\\x85b'",
        "tuples: tuple 't1': the id 'd1-c\\ufffe'",
    ]


def test_ids_match_in_any_unicode_form(tmp_path):
    one = dialogue("u\u0308ber")
    hits = plan(tuples_of(tmp_path, ["t1,über,über-a,über-b,über-c"]), [one], Settings())
    [expected] = answers.expected_tuples(hits[0].question)
    assert (expected.group, expected.items[0]) == ("über", "über-a")


def test_forbidden_characters_are_counted(tmp_path):
    one = replace(dialogue("d1"), turns=(Turn("user", "a\x00b\x01"),))
    hits = plan(tuples_of(tmp_path, rows_for([one], 1)), [one], Settings(dialogues_per_hit=1))
    assert plan_notes(hits, Settings(dialogues_per_hit=1)) == [
        "dialogue 'd1', turn 1: 2 characters cannot be displayed and are omitted"
    ]


def test_repeated_tuples_are_noted(tmp_path):
    rows = ["t1,tv-08,tv-08-a,tv-08-b,tv-08-c", "t2,tv-08,tv-08-c,tv-08-a,tv-08-b"]
    tuples_of(tmp_path, rows)
    with resources.as_file(DATA / "dialogues.jsonl") as dialogues:
        study = KIND.plan(str(tmp_path / "tuples.csv"), str(dialogues), SettingsFile(), None)
    assert "1 of 2 tuples repeat the items of another; each costs a full reward" in study.notes


def test_rounds_of_dialogues_that_need_none_are_noted_before_they_cost(tmp_path):
    with resources.as_file(DATA / "dialogues.jsonl") as dialogues:
        items, groups = read_items(dialogues)
        write_tuples(fresh_rounds(items, 3, 1, groups=groups), tmp_path / "tuples.csv")
        study = KIND.plan(str(tmp_path / "tuples.csv"), str(dialogues), SettingsFile(), None)
    assert any(
        "no further round: adaptive rounds gain nothing here: 5 items" in n for n in study.notes
    )
