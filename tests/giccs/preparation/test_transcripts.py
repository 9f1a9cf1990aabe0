"""Import of transcripts in every form; all dialogues here are invented."""

import gzip
import json
import random

import pytest

from bws.base.problems import InputError
from giccs.preparation.transcripts.importing import import_transcripts
from tests.nightly import others_nightly

TRANSLITERATION = """\
; invented, in the shape of a SmartKom session
; w001
w001_pkd_001_AAA: <"ahm> !KEYSmartakus , was l"auft heute a_ <A> _bend im
 Kino [B3 rise] ?
w001_pkw_002_SMA: im ~Gloria l"auft +/um neun/+ um #acht ein Krimi .
w001_pkd_003_AAA: <hm> <P>
; er klickt
w001_pkd_004_AAA: reservier mir <:<#Klicken> zwei:> Pl"atze .
"""


def file(folder, name, text):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def turns(dialogue):
    return [(turn.speaker, turn.text) for turn in dialogue.turns]


def said(warnings):
    return [f"{w.line}: {w.message}" for w in warnings]


def test_a_transliteration_becomes_a_dialogue(tmp_path):
    path = file(tmp_path, "w001_pk.trl", TRANSLITERATION)
    result = import_transcripts([path], domain="cinema")
    (dialogue,) = result.dialogues
    assert (dialogue.dialogue_id, dialogue.source, dialogue.domain) == (
        "w001_pk",
        "BAS SmartKom",
        "cinema",
    )
    assert turns(dialogue) == [
        ("user", "Smartakus, was läuft heute abend im Kino?"),
        ("system", "im Gloria läuft um acht ein Krimi."),
        ("user", "reservier mir zwei Plätze."),
    ]
    assert said(result.warnings) == ["6: turn without text skipped"]
    assert result.stripped["comment line"] == 3
    assert result.stripped["hesitation"] == 2
    assert result.stripped["umlaut"] == 3
    assert result.roles == {"AAA": "user", "SMA": "system"}
    assert result.counts == {
        "files": 1,
        "dialogues": 1,
        "turns": 3,
        "candidates": 0,
        "dialogues_left_out": 0,
    }


def test_two_people_are_not_taken_for_user_and_system(tmp_path):
    """Verbmobil: channels 1 and 2 of one dialogue, and nobody is the system."""
    path = file(
        tmp_path, "g.txt", "g223acn1_000_AHV_120000: guten Tag .\ng223acn2_001_BMW: Tag .\n"
    )
    result = import_transcripts([path])
    assert [(d.dialogue_id, turns(d)) for d in result.dialogues] == [
        ("g223acn", [("AHV", "guten Tag."), ("BMW", "Tag.")])
    ]
    assert [w.line for w in result.warnings] == [1, 2]
    assert "'AHV' (turns: 1) has no known role" in result.warnings[0].message
    assert result.dialogues[0].source == ""
    told = import_transcripts([path], user=["AHV"], system=["bmw"])
    assert [speaker for speaker, _ in turns(told.dialogues[0])] == ["user", "system"]
    assert told.warnings == ()


def test_markers_that_are_not_known_are_said(tmp_path):
    path = file(tmp_path, "a.trl", "w001_pkd_001_AAA: ja {laut}\nw001_pkw_002_SMA: gut\n")
    result = import_transcripts([path])
    assert said(result.warnings) == ["1: { } may be unknown markers; kept in the text"]


CROWDSS = """\
Dialog-ID;Turn;Rolle;Text;Dialogakt
r1;1;System;"Guten Tag,
womit kann ich helfen?";greet
r1;2;Nutzerin;Ich will;inform
r1;2;Nutzerin;heute essen.;request
r1;3;System;Gern.;ack
r2;2;Nutzerin;Zweite.;x
r2;1;System;Erste.;x
"""


def test_a_table_with_dialogue_acts(tmp_path):
    result = import_transcripts([file(tmp_path, "c.csv", "\ufeff" + CROWDSS)], "crowdss")
    first, second = result.dialogues
    assert turns(first) == [
        ("system", "Guten Tag,\nwomit kann ich helfen?"),
        ("user", "Ich will heute essen."),
        ("system", "Gern."),
    ]
    assert turns(second) == [("system", "Erste."), ("user", "Zweite.")]
    assert (first.source, first.domain) == ("CROWDSS", "restaurant")
    assert said(result.warnings) == [
        "None: columns of dialogue acts or labels ignored: Dialogakt (cells: 6)"
    ]
    assert result.unused == {"Dialogakt": 6}
    assert set(result.notes) == {
        "1 turns joined from several rows",
        "1 dialogues sorted by turn number",
    }


def test_columns_by_other_names(tmp_path):
    path = file(tmp_path, "t.tsv", "nr\twer\twas\n1\tGast\tHallo.\n1\tWirt\tTag.\n")
    result = import_transcripts(
        [path], columns={"dialogue": "nr", "speaker": "wer", "text": "was"}, user=["Gast"],
        system=["Wirt"], source="own", domain="bar",
    )  # fmt: skip
    (dialogue,) = result.dialogues
    assert turns(dialogue) == [("user", "Hallo."), ("system", "Tag.")]
    assert (dialogue.source, dialogue.domain) == ("own", "bar")


def test_json_lines_of_dialogues_and_of_turns(tmp_path):
    lines = [
        {"turns": ["eins", "zwei"]},
        {"dialogue_id": "x", "domain": "tv", "act": "q",
         "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]},
        {"dialog_id": 7, "speaker": "u", "text": "drei"},
        {"dialog_id": 7, "speaker": "s", "text": "vier"},
    ]  # fmt: skip
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))
    result = import_transcripts([path])
    assert [(d.dialogue_id, d.domain, turns(d)) for d in result.dialogues] == [
        ("d-1", "", [("", "eins"), ("", "zwei")]),
        ("x", "tv", [("user", "hi"), ("system", "ho")]),
        ("7", "", [("user", "drei"), ("system", "vier")]),
    ]
    assert said(result.warnings) == ["None: key 'act' ignored in 1 objects"]


def test_lone_turns_and_copies_are_left_out_and_named(tmp_path):
    rows = "a,user,Hallo.\na,system,Tag.\nb,user,Allein.\nc,user,Hallo.\nc,system,Tag.\nd,user,\nd,user,x\n"
    result = import_transcripts([file(tmp_path, "t.csv", f"dialogue,speaker,text\n{rows}")])
    assert [d.dialogue_id for d in result.dialogues] == ["a"]
    assert said(result.warnings) == [
        "7: turn without text skipped",
        "4: dialogue b has fewer than two turns; skipped",
        "5: dialogue c repeats a; skipped",
        "7: dialogue d has fewer than two turns; skipped",
    ]
    assert result.counts["dialogues_left_out"] == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "dialogue,speaker\na,user\n", "t.csv:1: no text column; expected"),
        ("t.csv", "dialogue,text\na,x,y\n", "t.csv:2: "),
        ("t.csv", "dialogue,text\n,x\n", "t.csv:2: empty dialogue id"),
        ("t.csv", "dialogue,turn,speaker,text\na,1,u,x\na,2,s,y\na,1,u,z\n",
         "t.csv:4: turn 1 of dialogue a is also in line 2"),
        ("t.trl", "Kein Turn.\n", "t.trl:1: text before the first turn"),
        ("t.trl", "; nur Kommentar\n", "t.trl: no turns"),
        ("t.jsonl", '{"turns": "x"}\n', "t.jsonl:1: turns is not a list"),
        ("t.jsonl", '{"turns": [{"speaker": "u"}]}\n', "t.jsonl:1: turn 1 has no text"),
        ("t.jsonl", '{"turns": [{"text": 1.5}]}\n', "t.jsonl:1: text is float; expected a string"),
        ("t.jsonl", '{"dialogue_id": "a", "turns": ["x", "y"]}\n' * 2,
         "t.jsonl:2: repeats the dialogue 'a' of line 1"),
        ("t.jsonl", "[1]\n", "t.jsonl:1: object 1: not a JSON object"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_with_its_line(tmp_path, name, text, message):
    path = file(tmp_path, name, text)
    good = file(tmp_path, "good.csv", "dialogue,text\nz,x\nz,y\n")
    with pytest.raises(InputError) as caught:
        import_transcripts([path, good])
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


GOOD = {
    "t.trl": TRANSLITERATION,
    "t.csv": 'dialogue,turn,speaker,text\na,1,user,"Wo, hier?"\na,2,system,Da.\n',
    "t.jsonl": '{"dialogue_id": "a", "turns": [{"speaker": "u", "text": "Wo?"}, "Da."]}\n',
    "t.txt": TRANSLITERATION,
}


@pytest.mark.parametrize("seed", others_nightly(range(60), *range(8)))
def test_damaged_files_give_problems_and_never_a_traceback(tmp_path, seed):
    draw = random.Random(seed)
    name = draw.choice(list(GOOD))
    data = bytearray(GOOD[name].encode() * 2)
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(data))
        match draw.randrange(3):
            case 0:
                data[at] = draw.randrange(256)
            case 1:
                del data[at : at + draw.randint(1, 20)]
            case 2:
                data[at:at] = draw.choice(
                    [
                        b'"',
                        b"[" * 500,
                        b"\n",
                        b"+/" * 300,
                        b"<" * 300,
                        b"\0",
                        b"null",
                        b"a_ _" * 200,
                    ]
                )
        data = data or bytearray(b"x")
    path = tmp_path / name
    path.write_bytes(data)
    problems, dialogues = (), ()
    try:
        dialogues = import_transcripts([path]).dialogues
    except InputError as error:
        problems = error.problems
    assert all(problem.message for problem in problems)
    assert all(len(dialogue.turns) >= 2 for dialogue in dialogues)
    assert all(turn.text.strip() for dialogue in dialogues for turn in dialogue.turns)


def test_one_dialogue_is_not_in_two_files(tmp_path):
    rows = "dialogue,text\na,x\na,y\n"
    paths = [file(tmp_path, "1.csv", rows), file(tmp_path, "2.csv", rows)]
    with pytest.raises(InputError, match=r"2\.csv:2: dialogue a is also in .*1\.csv"):
        import_transcripts(paths)


def test_a_dialogue_of_two_domains_takes_the_first(tmp_path):
    path = file(tmp_path, "t.csv", "dialogue,text,domain\na,x,\na,y,tv\na,z,fax\nb,x,\nb,z,\n")
    result = import_transcripts([path], domain="phone")
    assert [dialogue.domain for dialogue in result.dialogues] == ["tv", "phone"]
    assert said(result.warnings) == [
        "2: dialogue a has several domains (tv, fax); the first is used"
    ]


def test_a_speaker_is_not_both(tmp_path):
    path = file(tmp_path, "t.csv", "dialogue,text\na,x\na,y\n")
    with pytest.raises(ValueError, match="anna: a speaker must be either user or system"):
        import_transcripts([path], user=["Anna"], system=["anna"])
