"""Pages of sentence pairs: assignment of pairs to pages, content, and escaping."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bws.base.problems import InputError
from mturk import answers
from mturk.kinds import get_kind
from mturk.kinds.sentence_pairs import SentencePart, _pages
from mturk.question_xml import read_question
from mturk.study.settings_file import SettingsFile, default_settings

HOSTILE = "<script>document.title='run'</script> ${B} ]]> \"'` \u202eabc 🙂 {{ 7*7 }} \x07"


def triplets(pairs, each=2):
    return [
        SentencePart(f"{pair}-{n}", f"p{pair}", (f"A{pair}", f"B{pair}", f"c{n}"))
        for pair in range(pairs)
        for n in range(each)
    ]


@pytest.mark.parametrize(("pairs", "size"), [(4, 4), (10, 10), (25, 10), (7, 5), (100, 10)])
def test_conditions_of_a_pair_are_on_different_pages(pairs, size):
    settings = replace(default_settings("verification", "en"), dialogues_per_hit=size)
    parts = triplets(pairs)
    pages = _pages(parts, settings)
    assert sorted(part.tuple_id for page in pages for part in page) == sorted(
        part.tuple_id for part in parts
    )
    assert all(len(page) == size for page in pages[:-1])
    full = [page for page in pages if len(page) == size]
    assert all(len({part.group for part in page}) == size for page in full)


def test_order_does_not_reveal_intended_similarity():
    pages = _pages(triplets(200), default_settings("verification", "en"))
    first = [part.tuple_id[-1] for page in pages[:20] for part in page]
    assert 70 < first.count("0") < 130  # 100 expected of 200


@pytest.fixture
def planned(tmp_path):
    def plan(kind, text, **changes):
        path = tmp_path / "table.csv"
        path.write_text(text, encoding="utf-8")
        study = get_kind(kind).plan(str(path), None, SettingsFile(kind=kind, values=changes), "en")
        return study.hits, list(study.notes)

    return plan


def table(count, kind):
    texts = [f"Sentence {n}.,Other {n}." for n in range(count)]
    if kind == "conditions":
        return "\n".join(["sentence1,sentence2", *texts, ""])
    return "\n".join(["sentence1,sentence2,condition", *(f"{text},the n" for text in texts), ""])


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_plans_depend_on_content_and_terms_only(planned, kind):
    plans, notes = planned(kind, table(7, kind))
    again, _ = planned(kind, table(7, kind))
    assert plans == again
    size = default_settings(kind, "en").dialogues_per_hit
    assert notes == [f"HIT {len(plans)} has {7 % size} of {size} sentence pairs"]
    for changed in ({"seed": 1}, {"assignments": 7}, {"consent": "We ask."}, {"language": "de"}):
        other, _ = planned(kind, table(7, kind), **changed)
        assert not {hit.token for hit in plans} & {one.token for one in other}
    same, _ = planned(kind, table(7, kind), lifetime=3600)
    assert same == plans


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_expected_tuples_are_read_from_page(planned, kind):
    plans, _ = planned(kind, table(5, kind))
    for plan in plans:
        asked = answers.expected_tuples(plan.question)
        assert [part.tuple_id for part in asked] == [part.tuple_id for part in plan.parts]
        assert [part.items for part in asked] == [part.item_ids for part in plan.parts]
        assert {part.kind for part in asked} == {kind}


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.names, self.ids, self.refers, self.scripts, self.texts = [], [], [], 0, []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.scripts += tag == "script"
        self.names += [given["name"]] if tag == "input" and "name" in given else []
        self.ids += [given["id"]] if "id" in given else []
        for key in ("for", "aria-describedby", "aria-labelledby"):
            self.refers += given.get(key, "").split()

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_pages_escape_hostile_texts(planned, kind):
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    head, row = "sentence1,sentence2", f"{quoted},B."
    if kind != "conditions":
        head, row = f"{head},condition", f"{row},{quoted}"
    [plan], notes = planned(kind, f"{head}\n{row}\n")
    html = read_question(plan.question).html
    page = Page(html)
    assert page.scripts == 2
    assert len(page.ids) == len(set(page.ids))
    assert set(page.refers) <= set(page.ids)
    shown = HOSTILE.replace("\x07", "")
    assert shown in page.texts
    assert [note for note in notes if "cannot be displayed" in note]
    [asked] = answers.expected_tuples(plan.question)
    fields = get_kind(kind).columns(asked.tuple_id)
    assert set(fields.values()) <= set(page.names)
    assert not re.search(r"https?://|src=|@import", html)


def test_oversized_page_is_reported(planned):
    long = "word " * 9000
    with pytest.raises(InputError, match=r"HIT 1 .*Question has .* bytes; expected 1 to 65535"):
        planned("conditions", f"sentence1,sentence2\n{long},B\n")


def test_dialogues_are_for_tuples_only(planned):
    with pytest.raises(InputError, match="kind is 'conditions', which has no dialogues"):
        get_kind("conditions").plan(
            "x.csv", "dialogues.jsonl", SettingsFile(kind="conditions"), "en"
        )
