"""Selection: what is drawn and cut, which labels it gets, and what the log says of it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from giccs.benchmark.items import Candidate, Dialogue, Turn
from giccs.cli import preparing
from giccs.preparation.selection import rules, select
from giccs.preparation.selection.rules import DialogueRule, SamplingRule, SelectionRules, read_rules
from tests.nightly import others_nightly

LETTER = {"u": "user", "s": "system"}


def dialogue(name, speakers="sususu", domain="tv", source="chat"):
    turns = tuple(
        Turn(LETTER.get(speaker, speaker), f"{name} {place}")
        for place, speaker in enumerate(speakers, start=1)
    )
    return Dialogue(name, source, domain, turns, ())


def named(selection):
    return {dialogue.dialogue_id: len(dialogue.turns) for dialogue in selection.dialogues}


def decisions(selection, name):
    return [
        (decision.decision, dict(decision.details))
        for decision in selection.decisions
        if decision.dialogue_id == name
    ]


def test_without_rules_half_are_cut_to_three_turns_and_half_to_five():
    given = [dialogue(f"d{n}", "sususu"[: 3 + n % 4]) for n in range(12)]  # 3, 4, 5, 6 turns
    result = select(given, SelectionRules())
    # six of the twelve have five turns or more, the other six do for three
    assert Counter(named(result).values()) == {3: 6, 5: 6}
    order = [dialogue.dialogue_id for dialogue in result.dialogues]
    assert order == sorted(order, key=lambda name: int(name[1:]))
    assert select(given, SelectionRules()) == result


def test_an_odd_one_is_left_out_and_another_seed_leaves_out_another():
    given = [dialogue(f"d{n}") for n in range(9)]
    left = {
        decision.dialogue_id
        for seed in range(20)
        for decision in select(given, SelectionRules(seed=seed)).decisions
        if decision.decision == "left out"
    }
    assert len(left) > 3
    assert Counter(named(select(given, SelectionRules())).values()) == {3: 4, 5: 4}


def test_domains_of_one_size_are_not_drawn_alike():
    domains = [f"domain {n}" for n in range(8)]
    given = [dialogue(f"{domain}-{n}", domain=domain) for domain in domains for n in range(12)]
    result = select(given, SelectionRules(sampling=(SamplingRule(dialogues=2),)))
    places = {domain: [] for domain in domains}
    for one in result.dialogues:
        places[one.domain].append((one.dialogue_id.rpartition("-")[2], len(one.turns)))
    assert len({tuple(drawn) for drawn in places.values()}) > 4


def test_a_domain_more_does_not_change_the_draw_of_the_others():
    tv = [dialogue(f"d{n}") for n in range(20)]
    fax = [dialogue(f"f{n}", domain="fax") for n in range(9)]
    wanted = SelectionRules(sampling=(SamplingRule(dialogues=6),))
    alone = named(select(tv, wanted))
    assert {k: v for k, v in named(select([*fax, *tv], wanted)).items() if k in alone} == alone


def test_the_start_and_the_cut():
    given = [dialogue("d", "uususus")]
    result = select(
        given, SelectionRules(sampling=(SamplingRule(dialogues=1, lengths=(3,), start="system"),))
    )
    assert [turn.text for turn in result.dialogues[0].turns] == ["d 3", "d 4", "d 5"]
    assert decisions(result, "d") == [
        ("kept", {"source": "chat", "domain": "tv", "n_turns": 3}),
        ("start dropped", {"turns": 2}),
        ("cut", {"to": 3, "turns_dropped": 2}),
    ]


def test_why_dialogues_are_left_out():
    given = [
        dialogue("short", "su"),
        dialogue("people", "abab"),
        dialogue("wrong end", "sss"),
        dialogue("good", "sus"),
        dialogue("other", domain="fax"),
        dialogue("unwanted"),
        Dialogue("copy", "chat", "tv", dialogue("good", "sus").turns, ()),
    ]
    take = SamplingRule(domain=("tv",), lengths=(3,), start="system", last="system")
    result = select(
        given[:2] + given[3:],
        SelectionRules(
            sampling=(take,), dialogue_rules={"unwanted": DialogueRule(leave_out="dull")}
        ),
    )
    why = {
        decision.dialogue_id: decision.details["reason"]
        for decision in result.decisions
        if decision.decision == "left out"
    }
    assert why == {
        "short": "too short: 2 turns, 3 required",
        "people": "no system turn",
        "other": "no rule for its source and domain",
        "unwanted": "dull",
        "copy": "its first 3 turns are those of good",
    }
    ends = select(given[2:4], SelectionRules(sampling=(SamplingRule(lengths=(3,), last="user"),)))
    assert {decision.details["reason"] for decision in ends.decisions} == {
        "no user turn at the end for any of the lengths"
    }


def test_what_cannot_be_had_is_named():
    given = [dialogue(f"d{n}", "sus") for n in range(6)] + [dialogue("long", "susus")]
    with pytest.raises(ValueError, match="missing") as caught:
        select(given, SelectionRules(sampling=(SamplingRule(dialogues=6, start="system"),)))
    assert str(caught.value) == (
        "chat / tv: 2 of the dialogues of 5 turns that start with a system turn are missing; "
        "6 requested, 7 available"
    )


@pytest.mark.parametrize("seed", others_nightly(range(10), 0, 1, 2))
def test_what_can_be_had_is_never_missing(seed):
    """Only `both` ends with a user turn at three and at five turns, so it must not go to three."""
    given = [dialogue("both", "ususu"), dialogue("three", "usu"), dialogue("neither", "sss")]
    result = select(
        given, SelectionRules(seed=seed, sampling=(SamplingRule(dialogues=2, last="user"),))
    )
    assert named(result) == {"both": 5, "three": 3}


@given(
    st.lists(st.text("us", min_size=2, max_size=7), min_size=1, max_size=12),
    st.sampled_from(["any", "user", "system"]),
    st.sampled_from(["any", "user", "system"]),
    st.integers(0, 5),
)
def test_everything_taken_is_as_asked_for(shapes, start, last, seed):
    given = [dialogue(f"d{n}", shape) for n, shape in enumerate(shapes)]
    take = SamplingRule(start=start, last=last)
    result = select(given, SelectionRules(seed=seed, sampling=(take,)))
    counts = Counter(named(result).values())
    assert counts[3] == counts[5]
    by_id = {one.dialogue_id: one for one in given}
    for one in result.dialogues:
        assert start in ("any", one.turns[0].speaker)
        assert last in ("any", one.turns[-1].speaker)
        whole = by_id[one.dialogue_id].turns
        first = whole.index(one.turns[0])
        assert whole[first : first + len(one.turns)] == one.turns
    assert {decision.dialogue_id for decision in result.decisions} == by_id.keys()


def test_labels_and_edits():
    given = [
        dialogue("a", "sus", "phone"), dialogue("b", "sus", "cinema"), dialogue("c", "sus", "tv"),
        dialogue("d", "usus", "phone"),
    ]  # fmt: skip
    wanted = SelectionRules(
        sampling=(SamplingRule(lengths=(3,), start="system"),),
        relabel={"cinema": "find_cinema", "phone": "find_restaurant", "fax": "find_fax"},
        dialogue_rules={
            "a": DialogueRule(domain="find_hotel", edit={2: "kurz"}),
            "d": DialogueRule(edit={1: "fällt weg", 4: "neu"}),
        },
    )
    result = select(given, wanted)
    labels = {
        dialogue.dialogue_id: (dialogue.original_domain, dialogue.domain)
        for dialogue in result.dialogues
    }
    assert labels == {
        "a": ("phone", "find_hotel"),
        "b": ("cinema", "find_cinema"),
        "c": ("tv", "tv"),
        "d": ("phone", "find_restaurant"),
    }
    assert [turn.text for turn in result.dialogues[0].turns] == ["a 1", "kurz", "a 3"]
    assert [turn.text for turn in result.dialogues[3].turns] == ["d 2", "d 3", "neu"]
    assert decisions(result, "a")[1:] == [
        ("edited", {"turn": 2, "from": "a 2", "to": "kurz"}),
        ("relabelled", {"from": "phone", "to": "find_hotel", "by": "dialogue"}),
    ]
    assert ("edit not needed", {"turn": 1, "why": "not kept"}) in decisions(result, "d")
    assert result.warnings == (
        "1 dialogues keep the domain 'tv'; no label in the rules",
        "relabel: no selected dialogue has the domain 'fax'",
    )


def test_rules_that_name_what_is_not_there():
    given = [dialogue("a", "sus")]
    wanted = SelectionRules(
        sampling=(SamplingRule("chat", ("tv", "fax")), SamplingRule("radio")),
        dialogue_rules={"b": DialogueRule(), "a": DialogueRule(edit={4: "x"})},
    )
    with pytest.raises(ValueError, match="unknown dialogue") as caught:
        select(given, wanted)
    assert str(caught.value).split("\n") == [
        "dialogue a has no turn 4 to edit; it has 3",
        "no dialogue has the source chat and the domain fax in the rules; existing pairs are chat / tv",
        "no dialogue has the source radio and the domain any in the rules; existing pairs are chat / tv",
        "unknown dialogue b in the rules",
    ]


def test_candidates_come_after_the_selection():
    (one,) = [dialogue("a", "sus")]
    full = Dialogue("a", "", "", one.turns, (Candidate("x", "y"),))
    with pytest.raises(ValueError, match="dialogue a has candidates; expected dialogues without"):
        select([full], SelectionRules())


RULES = """\
seed = 7
start = "system"
[[take]]
source = "CROWDSS"
domain = "restaurant"
dialogues = 24
[[take]]
domain = ["tv", "fax"]
start = "any"
lengths = [3]
[relabel]
tv = "find_tvProgram"
[dialogue.w001_pk]
domain = "find_hotel"
edit = {2 = "Neu."}
[dialogue.x]
leave_out = "doppelt"
"""


def test_rules_are_read(tmp_path):
    path = tmp_path / "selection.toml"
    path.write_text(RULES, "utf-8")
    assert read_rules(path) == SelectionRules(
        seed=7,
        sampling=(
            SamplingRule("CROWDSS", ("restaurant",), 24, (3, 5), "system"),
            SamplingRule(None, ("tv", "fax"), None, (3,), "any"),
        ),
        relabel={"tv": "find_tvProgram"},
        dialogue_rules={
            "w001_pk": DialogueRule(domain="find_hotel", edit={2: "Neu."}),
            "x": DialogueRule(leave_out="doppelt"),
        },
    )
    path.write_text("dialogues = 6\n", "utf-8")
    assert read_rules(path) == SelectionRules(sampling=(SamplingRule(dialogues=6),))
    path.write_text("", "utf-8")
    assert read_rules(path) == SelectionRules()


@pytest.mark.parametrize("shown", [preparing.select.help, rules.__doc__])
def test_the_rules_that_are_shown_are_rules(tmp_path, shown):
    path = tmp_path / "shown.toml"
    path.write_text("seed = 0" + shown.partition("seed = 0")[2], "utf-8")
    assert [take.source for take in read_rules(path).sampling] == ["CROWDSS"]
    assert read_rules(path).dialogue_rules["w001_pk"].edit == {2: "New text of turn 2."}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\nstart = \n", ":2: not valid TOML: "),
        ("sed = 1", ":1: unknown key sed; expected one of source, domain, dialogues, lengths"),
        ("seed = -1", ":1: seed is -1; expected 0 or more"),
        ("seed = true", ":1: seed is True; expected an integer"),
        ("lengths = [3, 3]", ":1: lengths is [3, 3]; expected different integers of at least 2"),
        ("lengths = [1]", ":1: lengths is [1]; "),
        ('start = "me"', ":1: start is 'me'; expected 'any', 'user' or 'system'"),
        ("take = 3", ":1: take is 3; expected a list"),
        ("[[take]]\ndomain = 3", ":2: take.1.domain.1 is 3; expected a text"),
        ("[[take]]\n[[take]]\nn = 3", ":3: unknown key take.2.n; expected one of source, domain, "),
        ("[relabel]\ntv = 3", ":2: relabel.tv is 3; expected a text"),
        ('[relabel]\ntv = " "', ":2: relabel.tv is blank; expected a text"),
        (
            "[dialogue.a]\nedit = {x = 'y'}",
            ":2: dialogue.a.edit.x is no key; expected an integer",
        ),
        ("dialogue = {a = 3}", ":1: dialogue.a is 3; expected a table"),
    ],
)
def test_wrong_rules_are_told(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_rules(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_all_faults_of_the_rules_are_told_together(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('seed = "x"\nlast = 1\n[[take]]\nsource = ""\n', "utf-8")
    with pytest.raises(InputError) as caught:
        read_rules(path)
    assert len(caught.value.problems) == 3
