"""QuestionForm: parsing, and validation of answers."""

import re

import pytest

from mturk.question_form_schema import check_question
from mturk.question_xml import QuestionForm, read_question
from mturk.service.site.question_form import Block, FormQuestion, find_problems, read_form

SCHEMA = (
    "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/QuestionForm.xsd"
)


def question(identifier, answer, required="true"):
    return (
        f"<Question><QuestionIdentifier>{identifier}</QuestionIdentifier>"
        f"<DisplayName>Name of {identifier}</DisplayName><IsRequired>{required}</IsRequired>"
        f"<QuestionContent><Text>About {identifier}</Text></QuestionContent>"
        f"<AnswerSpecification>{answer}</AnswerSpecification></Question>"
    )


def selections(style="radiobutton", counts="", other=""):
    return (
        f"<SelectionAnswer>{counts}<StyleSuggestion>{style}</StyleSuggestion><Selections>"
        "<Selection><SelectionIdentifier>a</SelectionIdentifier><Text>First</Text></Selection>"
        "<Selection><SelectionIdentifier>b</SelectionIdentifier><Text>Second</Text></Selection>"
        "<Selection><SelectionIdentifier>c</SelectionIdentifier>"
        "<FormattedContent><![CDATA[<b>Third</b>]]></FormattedContent></Selection>"
        f"{other}</Selections></SelectionAnswer>"
    )


MANY = "<MinSelectionCount>1</MinSelectionCount><MaxSelectionCount>2</MaxSelectionCount>"
LENGTH = '<Constraints><Length minLength="3" maxLength="5"/></Constraints>'
NUMBER = '<Constraints><IsNumeric minValue="1" maxValue="10"/></Constraints>'
OVERVIEW = (
    "<Overview><Title>Hello</Title><Text>One\nTwo</Text><FormattedContent>"
    "<![CDATA[<h1>Head</h1><p>Text &amp; <i>more</i></p><script>alert(1)</script>]]></FormattedContent>"
    "<List><ListItem>x</ListItem><ListItem>y</ListItem></List>"
    "<Binary><MimeType><Type>image</Type></MimeType><DataURL>javascript:alert(1)</DataURL>"
    "<AltText>A picture</AltText></Binary></Overview>"
)


PATTERNS = (
    '<FreeTextAnswer><Constraints><AnswerFormatRegex regex="^[a-z]-" flags="i"/>'
    '<AnswerFormatRegex regex="[0-9]\\d$" errorText="Expected a code."/></Constraints></FreeTextAnswer>'
)
HARD = (
    '<FreeTextAnswer><Constraints><AnswerFormatRegex regex="^(\\w|a|[a-z])*(\\w|a|[a-z])*$"/>'
    "</Constraints></FreeTextAnswer>"
)


def whole(*parts):
    return f'<QuestionForm xmlns="{SCHEMA}">{"".join(parts)}</QuestionForm>'


def form(*parts):
    result = read_question(whole(*parts))
    assert isinstance(result, QuestionForm)
    return read_form(result.root)


def test_the_overview_is_read_as_plain_blocks():
    blocks = form(OVERVIEW)
    assert blocks == (
        Block("title", ("Hello",)),
        Block("text", ("One", "Two")),
        Block("text", ("Head", "Text & more", "alert(1)")),
        Block("list", ("x", "y")),
        Block("image", ("A picture",), ""),  # the address is no picture's
    )


def test_questions_are_read_with_their_bounds():
    parts = form(
        question("t", f"<FreeTextAnswer>{LENGTH}<DefaultText>abc</DefaultText></FreeTextAnswer>"),
        question("n", f"<FreeTextAnswer>{NUMBER}</FreeTextAnswer>"),
        question("r", selections()),
        question("m", selections("checkbox", MANY, "<OtherSelection/>"), "false"),
        question("f", "<FileUploadAnswer><MaxFileSizeInBytes>9</MaxFileSizeInBytes></FileUploadAnswer>"),
    )  # fmt: skip
    assert all(isinstance(part, FormQuestion) for part in parts)
    assert [part.kind for part in parts] == ["text", "number", "one", "many", "file"]
    assert [(part.low, part.high) for part in parts[:4]] == [(3, 5), (1, 10), (1, 1), (1, 2)]
    assert parts[0].default == "abc"
    assert parts[2].choices == (("a", "First"), ("b", "Second"), ("c", "Third"))
    assert parts[3].allows_other
    assert not parts[3].required


@pytest.mark.parametrize(
    ("answer", "fields", "wrong"),
    [
        (f"<FreeTextAnswer>{LENGTH}</FreeTextAnswer>", [("q", "abcd")], None),
        (f"<FreeTextAnswer>{LENGTH}</FreeTextAnswer>", [("q", "ab")], "has 2 characters; expected 3 to 5"),
        (f"<FreeTextAnswer>{LENGTH}</FreeTextAnswer>", [], "has not been answered"),
        (f"<FreeTextAnswer>{NUMBER}</FreeTextAnswer>", [("q", "10")], None),
        (f"<FreeTextAnswer>{NUMBER}</FreeTextAnswer>", [("q", "11")], "number from 1 to 10"),
        (f"<FreeTextAnswer>{NUMBER}</FreeTextAnswer>", [("q", "ten")], "number from 1 to 10"),
        ('<FreeTextAnswer><Constraints><IsNumeric/><Length maxLength="3"/></Constraints></FreeTextAnswer>',
         [("q", "1000")], "has 4 characters; expected 0 to 3"),
        (PATTERNS, [("q", "A-12")], None),
        (PATTERNS, [("q", "a-12")], None),
        (PATTERNS, [("q", "a12")], "Invalid input supplied."),
        (HARD, [("q", "a" * 40 + "!")], None),  # not decided in time
        (selections(), [("q", "b")], None),
        (selections(), [], "has not been answered"),
        (selections(), [("q", "z")], "not one of the choices"),
        (selections(), [("q", "a"), ("q", "b")], "has 2 choices; expected 1 to 1"),
        (selections("checkbox", MANY), [("q", "a"), ("q", "c")], None),
        (selections("checkbox", MANY), [("q", v) for v in "abc"], "has 3 choices; expected 1 to 2"),
        (selections(other="<OtherSelection/>"), [("q-other", "mine")], None),
    ],
)  # fmt: skip
def test_answers_are_held_against_the_form(answer, fields, wrong):
    result = find_problems(form(question("q", answer)), fields, "en")
    assert len(result) == (0 if wrong is None else 1)
    if wrong:
        assert "Name of q" in result[0]
        assert wrong in result[0]
    german = find_problems(form(question("q", answer)), fields, "de")
    assert len(german) == len(result)
    assert german != result or not result


def test_a_format_has_the_text_of_its_requester():
    parts = form(question("q", PATTERNS))
    assert find_problems(parts, [("q", "A-1\u0662")], "de") == ["Name of q: Expected a code."]


def test_what_is_not_required_may_be_left_out():
    parameters = form(question("q", PATTERNS, "false"))
    assert find_problems(parameters, [], "en") == []


def test_a_minimum_length_makes_an_answer_required():
    (part,) = form(question("q", f"<FreeTextAnswer>{LENGTH}</FreeTextAnswer>", "false"))
    assert part.required


def test_the_schema_is_that_of_the_documentation():
    assert check_question(whole(OVERVIEW, question("q", selections()), question("r", PATTERNS)))
    both = question("q", selections("checkbox", MANY, "<OtherSelection/>"))
    assert check_question(whole(both))


def free_text(constraints):
    return question(
        "q", f"<FreeTextAnswer><Constraints>{constraints}</Constraints></FreeTextAnswer>"
    )


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((), "QuestionForm contains nothing; expected"),
        ((OVERVIEW,), "QuestionForm contains Overview; expected"),
        (("<Overview/>", question("q", selections())), "Overview contains nothing"),
        (("text", question("q", selections())), "QuestionForm contains text; expected elements"),
        ((question("q", "<Answer/>"),), "AnswerSpecification contains Answer; expected (FreeTextAnswer|"),
        ((question("", selections()),), "QuestionIdentifier is ''"),
        ((question("q", selections(), "yes"),), "IsRequired is 'yes'; expected true|false|1|0"),
        ((question("q", selections("slider")),), "StyleSuggestion is 'slider'"),
        ((question("q", selections()), question("q", PATTERNS)), "QuestionIdentifier 'q' occurs 2 times"),
        ((question("q", selections().replace(">b<", ">a<")),), "SelectionIdentifier 'a' occurs 2 times"),
        ((question("q", selections(counts=MANY.replace(">2<", ">4<"))),),
         "4 selections are expected, but there are 3"),
        ((question("q", selections(counts="<MinSelectionCount>2</MinSelectionCount>")),),
         "MinSelectionCount is 2"),
        ((question("q", PATTERNS.replace("[0-9]", "[0-9")),), "AnswerFormatRegex: regex is"),
        ((question("q", PATTERNS.replace('flags="i"', 'flags="g"')),), "flags is 'g'; expected i?"),
        ((free_text("<AnswerFormatRegex/>"),), "no attribute regex"),
        ((free_text('<Length minLength="-3"/>'),), "minLength is '-3'"),
        ((question("q", '<FreeTextAnswer xmlns="urn:x"/>'),), "FreeTextAnswer has another namespace"),
        ((question("q", "<FreeTextAnswer><DefaultText/><Constraints/></FreeTextAnswer>"),),
         "FreeTextAnswer contains DefaultText Constraints"),
    ],
)  # fmt: skip
def test_violations_of_the_schema(parts, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        check_question(whole(*parts))
