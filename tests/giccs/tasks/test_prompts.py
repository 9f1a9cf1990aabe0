"""Templates: Figure 2 letter by letter, templates of one's own, and every fault of theirs."""

import pytest

from bws.base.problems import InputError
from giccs.benchmark.items import Turn
from giccs.prompts import TEMPLATES, Template, open_template

# The paper's Figure 2, line breaks inside an utterance undone.
TURNS = [
    Turn(
        "user",
        "Ich habe den Nachmittag in Heidelberg frei, möchte einen Bekannten treffen. Informationen "
        "brauche ich über Sehenswürdigkeiten der Stadt. Kann ich bitte einen Plan haben?",
    ),
    Turn(
        "system",
        "Die Sehenswürdigkeiten von Heidelberg. Wenn du möchtest, kann ich auch einen Vorschlag machen.",
    ),
    Turn(
        "user",
        "Ich möchte gerne Museen, Kloster und Gebäude auch natürlich sehen. Aber zunächst Museen.",
    ),
]
OPTIONS = [
    "Ich habe vor, heute Reiten zu gehen.",
    "Ich möchte gern zuerst Klöster sehen.",
    "Ich würde gerne Kloster, Museen und Gebäude selbstverständlich auch sehen, aber zuerst Museen.",
    "Ich würde gerne das Sportzentrum besuchen.",
    "Ich würde gerne die Gebäude sehen, aber ich bin offen für andere Optionen, wie Klöster oder Museen.",
]
FIGURE_2 = f"""Dialog:
Äußerung 1: {TURNS[0].text}
Äußerung 2: {TURNS[1].text}
Äußerung 3: {TURNS[2].text}

Frage: Wählen Sie die Äußerung, die der letzten Äußerung im Dialog am ähnlichsten ist.
Auswahl:
A. {OPTIONS[0]}
B. {OPTIONS[1]}
C. {OPTIONS[2]}
D. {OPTIONS[3]}
E. {OPTIONS[4]}
Antwort:"""


def test_figure_2_of_the_paper():
    assert open_template("figure2-de-1").render(TURNS, OPTIONS) == FIGURE_2


def test_the_english_twin_has_the_same_shape():
    german, english = (open_template(name).render(TURNS, OPTIONS) for name in TEMPLATES)
    assert len(german.split("\n")) == len(english.split("\n"))
    for one, other in zip(german.split("\n"), english.split("\n"), strict=True):
        assert one.split(" ")[1:2] == other.split(" ")[1:2] or ":" in one.split(" ")[0]
    assert "Utterance 3: Ich möchte" in english
    assert english.endswith("\nAnswer:")


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("figure2-de-1", "517e7f036e23"),
        ("figure2-en-1", "92e42f2056c0"),
    ],
)
def test_a_template_that_ships_never_changes(name, digest):
    """A new wording is a new file: results that were made with the old one stay comparable."""
    assert open_template(name).digest.startswith(digest)


@pytest.fixture
def own(tmp_path):
    def write(text):
        path = tmp_path / "own.txt"
        path.write_bytes(text.encode("utf-8"))
        return str(path)

    return write


def test_lines_of_one_kind_are_repeated_together(own):
    template = open_template(own("{speaker}:\n{turn}\n--\n({letter})\n{option}\n--\nNow: "))
    shown = template.render([Turn("user", " Ja. "), Turn("system", "Nein.")], ["x", "y"])
    assert shown == "user:\nJa.\nsystem:\nNein.\n--\n(A)\nx\n(B)\ny\n--\nNow: "


def test_the_last_turn_may_be_emphasised(own):
    template = open_template(own("{turn}\nLast: {last}\n{option}"))
    turns = [Turn("user", "Ja."), Turn("system", " Nein. ")]
    assert template.render(turns, ["x"]) == "Ja.\nNein.\nLast: Nein.\nx"
    assert template.render([], ["x"]) == "Last: \nx"


def test_no_turn_and_no_option_leave_the_rest(own):
    template = open_template(own("Dialog:\n{turn}\nAntwort:"))
    assert template.render([], ["x"]) == "Dialog:\nAntwort:"
    assert not template.lists_options
    assert open_template("figure2-de-1").lists_options


def test_the_text_is_what_counts_not_how_the_file_ends_its_lines(own):
    plain = open_template(own("{turn}\n{option}\nAntwort:"))
    assert open_template(own("{turn}\r\n{option}\r\nAntwort:\r\n")).digest == plain.digest
    assert open_template(own("\ufeff{turn}\n{option}\nAntwort:\n")).digest == plain.digest
    assert open_template(own("{turn}\n{option}\nAntwort: ")).digest != plain.digest


def test_braces_in_utterances_and_doubled_ones_in_templates_are_just_braces(own):
    template = open_template(own("{{x}} {turn}\n{option}"))
    assert template.render([Turn("", "{turn} {0} %s")], ["}{"]) == "{x} {turn} {0} %s\n}{"


def test_every_fault_is_told_with_its_line(own):
    with pytest.raises(InputError) as caught:
        open_template(
            own("{text}\n{turn} {option}\n{\n{turn!r}\n{option.__class__}\n{turn} {last}\n")
        )
    problems = caught.value.problems
    assert [problem.line for problem in problems] == [1, 2, 3, 4, 5, 6]
    assert problems[0].message.startswith(
        "unknown field {text}; expected one of {last}, {letter}, {number}, {option},"
    )
    assert "expected separate lines" in problems[1].message
    assert "a literal brace must be doubled" in problems[2].message
    assert "unknown field {turn!r}" in problems[3].message
    assert "unknown field {option.__class__}" in problems[4].message
    assert problems[5].message == problems[1].message


def test_a_template_must_show_the_dialogue(own):
    with pytest.raises(InputError, match=r"has no dialogue; expected a line with \{turn\}"):
        open_template(own("{letter} {option}"))


def test_a_name_that_is_nothing():
    with pytest.raises(
        InputError,
        match="figure9: is neither a file nor a built-in template; expected figure2-de-1",
    ):
        open_template("figure9")


def test_templates_are_told_apart_by_their_text():
    assert Template("a", "{turn}").digest == Template("b", "{turn}").digest
    assert Template("a", "{turn}").digest != Template("a", "{turn} ").digest
