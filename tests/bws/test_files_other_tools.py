"""Files of other tools are read without options, with --column, or refused; the documentation lists them."""

import os
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.base.problems import InputError
from bws.cli.scores import score
from bws.files.named_columns import proposal
from bws.files.table import read_table

from .other_tools import BATCH, CSV, FILES, JUDGED, KM, TRIALS, rows

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[3] / "shared")) / "data"
READ = {name: file for name, file in FILES.items() if file.form}
WITHOUT_OPTIONS = [name for name, file in READ.items() if not file.parts]
WITH_COLUMNS = [name for name, file in READ.items() if file.parts]


def written(folder, name):
    file = FILES[name]
    content = file.content if isinstance(file.content, bytes) else file.content.encode()
    path = folder / file.name
    path.write_bytes(content)
    return path


def judged(judgments):
    """Return the answers; pairs of SemRel with an empty half are the items alone."""
    rows = [
        (frozenset(item.removesuffix(" |||") for item in r.items), *(r.best, r.worst))
        for r in judgments.records()
        if "gold_comment" not in r.items
    ]
    return sorted((items, *(text.removesuffix(" |||") for text in best)) for items, *best in rows)


def check(judgments, name):
    file = FILES[name]
    assert judged(judgments) == JUDGED
    assert judgments.source.endswith(f"({file.form})")
    names = [w for *_, w in TRIALS] if file.has_annotators else []
    assert judgments.annotators.tolist() == names


@pytest.mark.parametrize("name", WITHOUT_OPTIONS)
def test_a_file_is_read_without_options(name, tmp_path):
    check(bws.read_judgments(written(tmp_path, name)), name)


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_the_message_proposes_the_columns_of_a_file(name, tmp_path):
    path, parts = written(tmp_path, name), FILES[name].parts
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path)
    command = str(caught.value).rpartition("read them with: ")[2]
    options = shlex.split(command)[3:]
    assert dict(each.split("=") for each in options[1::2]) == parts
    check(bws.read_judgments(path, parts=parts), name)
    result = CliRunner().invoke(score, [str(path), *options, "--json"])
    assert (result.exit_code, f"({FILES[name].form})" in result.stdout) == (0, True)


@pytest.mark.parametrize("name", sorted(FILES.keys() - READ.keys()))
def test_a_file_that_could_be_misread_is_refused(name, tmp_path):
    path = written(tmp_path, name)
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path)
    assert FILES[name].message in str(caught.value)
    assert str(caught.value).count("\n") == 0


FORMS = {
    "csv": ("i,j,k,Top,Low\n", "{a},{b},{c},{best},{worst}"),
    "km": ("i,j,k,Top,Low\n", "{a},{b},{c},{best},{worst}"),
    "hollis": ("i,j,k,Top,Low\n", "{a},{b},{c},{best},{worst}"),
    "wide": ("i,j,k,Top,Low\n", "{a},{b},{c},{best},{worst}"),
    "semeval": ("i,j,k,Top,Low\n", "{a},{b},{c},1,3"),
    "label-studio": ("i,j,k,Top,Low,annotation_id,lead_time\n", "{a},{b},{c},A,C,1,2"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_roles_of_a_format_can_be_named(form, tmp_path):
    header, template = FORMS[form]
    path = tmp_path / "judgments.csv"
    path.write_text(header + rows(template) + "\n")
    parts = {"items": "i,j,k", "best": "Top", "worst": "Low"}
    assert judged(bws.read_judgments(path, form, parts=parts)) == JUDGED
    detected = form if form in ("semeval", "label-studio") else "csv"
    judgments = bws.read_judgments(path, parts=parts)
    assert (judged(judgments), judgments.source) == (JUDGED, f"{path} ({detected})")


def test_other_columns_with_the_name_of_a_role_are_kept_apart(tmp_path):
    path = tmp_path / "judgments.csv"
    text = CSV.replace("annotator", "annotator,who,x1,item9")
    path.write_text(text.replace("w1", "row1,w1,p,q").replace("w2", "row2,w2,p,q"))
    parts = {"annotator": "who", "items": "item1,item2,item3"}
    judgments = bws.read_judgments(path, parts=parts)
    assert judgments.annotators.tolist() == ["w1", "w2"]
    assert judged(judgments) == JUDGED
    assert judgments.columns["annotator (unused)"].tolist() == ["row1", "row2"]


def test_a_proposal_does_not_leave_out_an_item_that_is_never_chosen(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("A,B,C,Most liked,Least liked\nx,y,z,x,z\nz,y,x,z,x\n")
    assert "items=A,B,C " in proposal(read_table(path))


# Several files


def two_files(tmp_path, first=CSV, second=None):
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    second = CSV.replace("w1", "w3").replace("w2", "w1") if second is None else second
    for path, text in zip(paths, (first, second), strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_several_files_are_one_study_with_the_file_as_a_column(tmp_path):
    paths = two_files(tmp_path)
    judgments = bws.read_judgments(paths)
    assert judgments.annotators.tolist() == ["w1", "w2", "w3"]
    assert judgments.columns["file"].tolist() == [paths[0]] * 2 + [paths[1]] * 2
    assert (len(judgments), len(judgments.tuples)) == (4, 2)
    assert judgments.source == f"{paths[0]} and 1 more file (csv)"
    (tmp_path / "both.csv").write_text(CSV + Path(paths[1]).read_text().partition("\n")[2])
    whole = bws.read_judgments(tmp_path / "both.csv")
    assert judgments.canonical.digest() == whole.canonical.digest()
    result = CliRunner().invoke(score, [*paths, "--json"])
    assert result.exit_code == 0


def test_files_of_different_formats_and_notations_are_joined(tmp_path):
    positions = "item1,item2,item3,best,worst\nd,b,c,2,1\nc,b,a,1,3\n"
    judgments = bws.read_judgments(two_files(tmp_path, KM, positions))
    assert judgments.source.endswith("(km and semeval)")
    assert judged(judgments)[0][1:] == ("a", "c")
    assert judged(judgments) == sorted(
        [*JUDGED, (frozenset("bcd"), "b", "d"), (frozenset("abc"), "c", "a")]
    )


def test_a_judgment_in_two_files_is_refused_with_both_places(tmp_path):
    paths = two_files(tmp_path, second=CSV.replace("w2", "w3"))
    with pytest.raises(InputError) as caught:
        bws.read_judgments(paths)
    assert str(caught.value) == (
        f"{paths[1]}:2: annotator 'w1' has judged this tuple in {paths[0]}:2; expected one judgment per "
        "annotator and tuple; without tuple ids, rows with the same items are one tuple"
    )


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("item1,item2,best,worst\na,b,a,b\n", "second.csv: 2 items per row; .*first.csv has 3"),
        (
            "tuple_id," + CSV.replace("\n", "\nt,", 1).replace("\nb", "\nu,b"),
            "has no tuple_id, but",
        ),
        ("item1,item2,item3,best,worst\na,b,c,9,1\n", "second.csv:2: best is '"),
    ],
)
def test_files_that_do_not_fit_are_refused(second, message, tmp_path):
    with pytest.raises(InputError, match=message):
        bws.read_judgments(two_files(tmp_path, second=second))


def test_a_file_that_is_given_twice_is_refused(tmp_path):
    path, _ = two_files(tmp_path)
    with pytest.raises(InputError, match=r"first\.csv: is given twice; expected other files"):
        bws.read_judgments([path, f"{tmp_path}/../{tmp_path.name}/first.csv"])


def test_a_tuple_id_of_two_tuples_is_refused_with_both_files(tmp_path):
    head = "tuple_id,item1,item2,item3,best,worst\n"
    paths = two_files(tmp_path, f"{head}t1,a,b,c,a,c\n", f"{head}t1,a,b,d,a,d\n")
    with pytest.raises(
        InputError, match=r"second\.csv:2: this tuple_id has another .*first\.csv:2"
    ):
        bws.read_judgments(paths)


def test_copies_in_another_file_are_reported_with_both_files(tmp_path):
    head = "tuple_id,item1,item2,item3,best,worst,annotator\n"
    first = head + "".join(f"t{n},a{n},b{n},c{n},a{n},c{n},w\n" for n in range(12))
    paths = two_files(tmp_path, first, first.replace("\nt", "\nu"))
    judgments = bws.read_judgments(paths)
    assert [str(problem) for problem in judgments.copies] == [
        f"{paths[1]}:2: 12 of 24 judgments repeat annotator, items, best and worst under another tuple id "
        f"({paths[1]}:2 and {paths[0]}:2, {paths[1]}:3 and {paths[0]}:3, {paths[1]}:4 and {paths[0]}:4, ...)"
    ]


# Published samples


def shared(pattern):
    files = sorted(SHARED.glob(pattern))
    if not files:
        pytest.skip(f"{SHARED / pattern} is missing; set GICCS_SHARED")
    return files


@pytest.mark.parametrize(
    ("pattern", "form", "sizes"),
    [
        ("bwstools/agg.csv", "long", (100, 60, 20)),
        ("bwstools/indiv.csv", "long", (130, 13, 10)),
        ("bwstools/vdata.csv", "long", (4550, 13, 350)),
        ("hollis-age-of-acquisition/*.csv", "hollis", (18720, 1040, 72)),
        ("semrel2024/hi_dev.csv", "semeval", (2400, 300, 0)),
        ("semrel2024/arq_bws.csv", "semeval", (7359, 4006, 0)),
        ("ruddit/Ruddit_individual_annotations.csv", "km", (78639, 6001, 0)),
    ],
)
def test_published_judgments_are_read_without_options(pattern, form, sizes):
    files = shared(pattern)
    judgments = bws.read_judgments(files if len(files) > 1 else files[0])
    assert judgments.source.endswith(f"({form})")
    assert (len(judgments), len(judgments.tuples.items), len(judgments.annotators)) == sizes


def test_each_file_of_hollis_is_one_person():
    for path in shared("hollis-age-of-acquisition/*.csv"):
        judgments = bws.read_judgments(path)
        assert (len(judgments), judgments.annotators.tolist()) == (260, [path.name.split("_")[2]])
        assert np.bincount(judgments.tuples.members.ravel()).tolist() == [1] * 1040


# Documentation


def test_the_documentation_lists_the_files():
    lines = [
        f"| {f.tool} | {f.columns} | {f.reading.replace('|', chr(92) + '|')} |"
        for f in FILES.values()
    ]
    assert len(lines) >= 25
    page = PAGE.read_text("utf-8")
    missing = [line for line in lines if line not in page]
    assert missing == [], "\n".join(missing)


# Proposals


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (
            "rt1,rt2,word1,word2,best,worst\n210,312,kite,bus,1,2\n190,288,tram,cat,2,1\n",
            ["items=word1,word2", "best=best", "worst=worst"],
        ),
        (
            "item10,item2,item1,item3,best,worst\nx,y,z,w,1,2\nw,z,y,x,3,4\n",
            ["items=item1,item2,item3,item10", "best=best", "worst=worst"],
        ),
        ("A,B,C,D,best,worst\nx,y,z,w,1,4\n", ["items=A,B,C,D", "best=best", "worst=worst"]),
        (
            "Wort A;Wort B;am meisten;am wenigsten\nx;y;x;y\ny;z;z;y\n",
            ["items=Wort A,Wort B", "best=am meisten", "worst=am wenigsten"],
        ),
        (
            "Wort A;Wort B;positivste;negativste\nx;y;x;y\ny;z;z;y\n",
            ["items=Wort A,Wort B", "best=positivste", "worst=negativste"],
        ),
        (
            '"Word, A";"Word, B";"Most, really";"Least, =no"\nx;y;x;y\ny;z;z;y\n',
            ['items="Word, A","Word, B"', "best=Most, really", "worst=Least, =no"],
        ),
    ],
)
def test_a_proposed_command_reads_the_file(text, roles, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path)
    options = shlex.split(str(caught.value).rpartition("read them with: ")[2])[3:]
    assert options[1::2] == roles
    assert CliRunner().invoke(score, [str(path), *options]).exit_code == 0


def test_answers_of_a_batch_with_other_names_are_proposed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        BATCH
        + "Answer.pos,Answer.neg\n"
        + rows("h,x,{w},Approved,{a},{b},{c},{best},{worst}")
        + "\n"
    )
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path)
    options = shlex.split(str(caught.value).rpartition("specify ")[2])
    assert options == ["--column", "best=Answer.pos", "--column", "worst=Answer.neg"]
    result = CliRunner().invoke(score, [str(path), *options])
    assert (result.exit_code, "mturk-batch" in result.stderr) == (0, True)


def test_a_role_that_is_named_twice_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    result = CliRunner().invoke(score, [str(path), "--column", "items=i,j", "--column", "items=i"])
    assert (result.exit_code, "names items twice" in result.stderr) == (2, True)


def test_messages_on_named_columns_have_the_names_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item1,item2,item3,good,bad\na,b,c,a,c\n")
    with pytest.raises(InputError) as caught:
        bws.read_judgments(path, parts={"items": "item1"})
    assert "the columns item1, item2, item3, good, bad match" in str(caught.value)
    assert "unused" not in str(caught.value)


@pytest.mark.parametrize("parts", [None, {"items": "x,y,z", "best": "Top", "worst": "Low"}])
def test_columns_are_named_for_all_files(parts, tmp_path):
    second = "A,B,C,best1,worst1\na,b,c,a,c\n"
    paths = two_files(tmp_path, "x,y,z,Top,Low\na,b,c,a,c\n" if parts else CSV, second)
    expected = r"second\.csv: --column names the columns of all files; if they differ, give the col"
    with pytest.raises(InputError, match=expected):
        bws.read_judgments(paths, parts=parts)
