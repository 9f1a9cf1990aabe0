"""The same judgments in another form give the same numbers, or are refused.

Each transformation changes only how a study is written: the order of rows and of the items in a row, names,
columns, notations, encodings and parts. Each analysis returns its numbers by the ids of the original study.
"""

import gzip
import unicodedata
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

import bws
from bws.components import generalisability
from bws.raw_agreement import annotator_pairs
from tests.nightly import others_nightly

from .model_judgments import study

K = 4
ITEMS = [f"item{position}" for position in range(1, K + 1)]


def text_frame(judgments):
    frame = judgments.to_frame("polars")
    return frame.select(pl.all().cast(pl.String).fill_null(""))


def order_in_rows(frame, permutations):
    """Return the rows with items in other columns; `permutations` is (J, K)."""
    table = frame.select(ITEMS).to_numpy()
    moved = np.take_along_axis(table, permutations, axis=1)
    return frame.with_columns(
        pl.Series(name, moved[:, index], dtype=pl.String) for index, name in enumerate(ITEMS)
    )


@dataclass(frozen=True)
class Study:
    """Judgments of people and of a model, and the original ids of renamed items, groups and annotators."""

    people: pl.DataFrame
    model: pl.DataFrame
    original: dict[str, str] = field(default_factory=dict)

    def each(self, change):
        return Study(change(self.people), change(self.model), self.original)

    def renamed(self, columns, new):
        """Return the study with other ids in some columns; `shown` has the ids of items."""
        names = sorted({*pl.concat([self.people[c] for c in columns]).to_list()} - {""})
        ids = dict(zip(names, new(names), strict=True))
        if "annotator" not in columns:
            names = sorted({*pl.concat([self.model[c] for c in columns]).to_list()} - {""})
            assert {*names} <= {*ids}

        def change(frame):
            frame = frame.with_columns(pl.col(columns).replace(ids))
            if "item1" in columns:
                shown = [";".join(ids[i] for i in row.split(";")) for row in frame["shown"]]
                frame = frame.with_columns(pl.Series("shown", shown))
            return frame

        original = {**self.original, **{value: key for key, value in ids.items()}}
        return Study(change(self.people), change(self.model), original)

    def id(self, name):
        return self.original.get(str(name), str(name))


def simulated(groups):
    people, model = study(0.5, groups=groups, items=12 if groups == 1 else 6, annotators=5)
    people, model = text_frame(people), text_frame(model)
    return Study(people, model.with_columns(pl.lit("model:m@1").alias("annotator")))


STUDIES = {"one group": simulated(1), "eight groups": simulated(8)}


# Analyses: numbers by the ids of the untransformed study.


def scores(study, method="counting", **options):
    return by_item(study, bws.score(study.people, method, **options))


def by_item(study, result):
    frame = result.to_frame("polars")
    values = frame.select(pl.exclude("item", "group").fill_null(float("nan"))).to_dicts()
    keys = zip(frame["group"], frame["item"], strict=True)
    return {
        (study.id(group), study.id(item), name): value
        for (group, item), row in zip(keys, values, strict=True)
        for name, value in row.items()
    }


def scores_of(method):
    return lambda study: scores(study, method)


def intervals(study):
    return scores(study, bootstrap=50, cluster="both")


def numbers(document, *without):
    """Return the numbers in nested dicts and lists by their path, without some keys."""
    if isinstance(document, dict):
        pairs = [(key, value) for key, value in document.items() if key not in without]
    elif isinstance(document, list | tuple):
        pairs = enumerate(document)
    else:
        return {(): document} if isinstance(document, int | float) else {}
    return {
        (key, *path): value
        for key, inner in pairs
        for path, value in numbers(inner, *without).items()
    }


def prediction_powered(study):
    """People judged a part of the tuples, chosen by their items, whatever their order and names."""
    sets = [
        sum(int(study.id(item)) for item in row) % 3 == 0
        for row in study.people.select(ITEMS).iter_rows()
    ]
    part = study.people.filter(pl.Series(sets))
    return by_item(study, bws.prediction_powered_scores(part, study.model))


def reliability(study):
    return numbers(bws.reliability(study.people, trials=20, seed=1).document(), "signature")


def curve(study):
    return numbers(bws.reliability_curve(study.people, trials=10).document(), "signature")


def agreement(study):
    document = bws.agreement(study.people).document()
    return numbers(
        document["groups"], "alpha_positions"
    )  # Published figures depend on the order in a row.


def components(study):
    judgments = bws.read_judgments(study.people).canonical
    return numbers(generalisability(judgments).document())


def annotators(study):
    document = bws.annotator_report(study.people).document()
    of_halves = ("scale_first", "scale_second", "worse_p")  # which follow the order of the rows
    rows = {study.id(row["annotator"]): numbers(row, *of_halves) for row in document["annotators"]}
    return {(name, *path): value for name, row in rows.items() for path, value in row.items()}


def pairs(study):
    result = annotator_pairs(bws.read_judgments(study.people))
    names = [study.id(name) for name in result.annotators]
    return {
        (*sorted((left, right)),): float(result.agreement[i, j])
        for i, left in enumerate(names)
        for j, right in enumerate(names)
        if i < j
    }


def verdict(study):
    return numbers(bws.verdict(study.people, study.model).document(), "annotators", "signature")


def stopping(study):
    return numbers(bws.stopping(study.people, target=0.9).document())


ANALYSES = {
    "scores": scores,
    "bradley-terry": scores_of("bradley-terry"),
    "best-worst logit": scores_of("best-worst-logit"),
    "intervals": intervals,
    "prediction-powered scores": prediction_powered,
    "reliability": reliability,
    "curve": curve,
    "agreement": agreement,
    "components": components,
    "annotators": annotators,
    "pairs": pairs,
    "verdict": verdict,
    "stopping": stopping,
}

# Transformations.


def rng():
    return np.random.default_rng(5)


def permuted_rows(study):
    return study.each(lambda frame: frame.sample(fraction=1, shuffle=True, seed=7))


def items_by_name(study):
    return study.each(lambda f: order_in_rows(f, np.argsort(f.select(ITEMS).to_numpy(), axis=1)))


def items_at_random(study):
    return study.each(
        lambda f: order_in_rows(f, rng().permuted(np.tile(np.arange(K), (len(f), 1)), axis=1))
    )


def best_item_first(study):
    def change(frame):
        table, best = frame.select(ITEMS).to_numpy(), frame["best"].to_numpy()
        return order_in_rows(frame, np.argsort(table != best[:, np.newaxis], axis=1, kind="stable"))

    return study.each(change)


def prefixed(names):
    return [f"new {name}" for name in names]


def reversed_names(names):
    return [f"n{number:03}" for number in range(len(names), 0, -1)]


def renamed_items(new):
    return lambda study: study.renamed([*ITEMS, "best", "worst"], new)


def renamed(column, new):
    return lambda study: study.renamed([column], new)


def without_tuple_ids(study):
    return study.each(lambda frame: frame.drop("tuple_id"))


def reordered_columns(study):
    return study.each(lambda frame: frame.select(reversed(frame.columns)))


def merged_parts(study):
    """Return the rows as files of two batches would give them, the second one first."""
    return study.each(lambda f: pl.concat([f[len(f) // 3 :], f[: len(f) // 3]]))


SAME = {
    "permuted rows": permuted_rows,
    "items by name": items_by_name,
    "items at random": items_at_random,
    "best item first": best_item_first,
    "prefixed items": renamed_items(prefixed),
    "prefixed annotators": renamed("annotator", prefixed),
    "prefixed tuples": renamed("tuple_id", prefixed),
    "tuples in reverse order": renamed("tuple_id", reversed_names),
    "no tuple ids": without_tuple_ids,
    "reordered columns": reordered_columns,
    "merged parts": merged_parts,
}
"""Transformations that keep the order of names: all numbers stay."""


def combined(*names):
    def change(study):
        for name in names:
            study = SAME[name](study)
        return study

    return {" + ".join(names): change}


COMBINED = (
    combined("items at random", "prefixed items", "no tuple ids", "permuted rows")
    | combined("best item first", "prefixed annotators", "tuples in reverse order", "merged parts")
    | combined("items by name", "prefixed tuples", "reordered columns")
)
"""Each of `SAME` once: they notice what these notice, with fewer analyses."""

OTHER_ORDER = {
    "items in reverse order": renamed_items(reversed_names),
    "annotators in reverse order": renamed("annotator", reversed_names),
    "groups in reverse order": renamed("group", reversed_names),
}
"""Transformations that change the order of names, on which random splits and resamples depend."""
RANDOM = {"reliability", "curve", "intervals", "components", "verdict", "stopping"}
EXACT = [name for name in ANALYSES if name not in RANDOM]


def check_same(study, changes, analysis):
    before = analysis(study)
    assert before
    for name, change in changes.items():
        after = analysis(change(study))
        assert after == pytest.approx(before, rel=1e-7, abs=1e-9, nan_ok=True), name


def test_combined_transformations_are_all():
    assert sorted(SAME) == sorted(name for names in COMBINED for name in names.split(" + "))


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES.keys())
@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=ANALYSES.keys())
@pytest.mark.parametrize(
    "changes", others_nightly([COMBINED, SAME], COMBINED), ids=["combined", "single"]
)
def test_another_form_has_the_same_numbers(study, analysis, changes):
    check_same(study, changes, analysis)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES.keys())
@pytest.mark.parametrize("analysis", EXACT)
def test_names_in_another_order_have_the_same_numbers(study, analysis):
    check_same(study, OTHER_ORDER, ANALYSES[analysis])


def positions(frame, first=1):
    """Return the frame with the answers as positions in the row, counted from `first`."""
    table = frame.select(ITEMS).to_numpy()
    answers = {
        name: pl.Series((table == frame[name].to_numpy()[:, np.newaxis]).argmax(axis=1) + first)
        for name in ("best", "worst")
    }
    names = {"best": "Best", "worst": "Worst"}
    return frame.drop("shown").with_columns(**answers).rename(names).cast(pl.String)


def decomposed(frame):
    accented = frame.with_columns(
        pl.col([*ITEMS, "best", "worst", "group"]).map_elements(
            lambda text: unicodedata.normalize("NFD", text), return_dtype=pl.String
        )
    )
    return accented.write_csv().encode()


def with_names(frame, **names):
    """Return the frame with other names of columns; `item` is the beginning of those of items."""
    item = names.pop("item", "item")
    return frame.rename({name: name.replace("item", item) for name in ITEMS} | names)


def without_chosen(frame):
    """Return trials as in the sample data of Hollis's tools: the options are the other items."""
    kept = [name for name in frame.columns if name not in (*ITEMS, "shown")]
    others = [
        [item for item in row[:K] if item not in row[K:]]
        for row in frame.select(*ITEMS, "best", "worst").iter_rows()
    ]
    names = [f"option{n}" for n in range(1, K - 1)]
    return pl.concat(
        [frame.select(kept), pl.DataFrame(others, names, orient="row")], how="horizontal"
    )


def long_form(frame, names=("id", "block", "item", "value")):
    """Return one row per item of a judgment, as in bwsTools."""
    rows = [
        (row["annotator"], row["tuple_id"], row[name], str(value), row["group"])
        for row in frame.iter_rows(named=True)
        for name in ITEMS
        for value in [int(row[name] == row["best"]) - int(row[name] == row["worst"])]
    ]
    return pl.DataFrame(rows, [*names, "group"], orient="row")


def radio_buttons(frame):
    """Return batch results of MTurk with a column of true and false per button."""
    answers = {
        f"Answer.{word}.{n}": (frame[name] == frame[role]).cast(pl.String)
        for role, word in (("best", "most"), ("worst", "least"))
        for n, name in enumerate(ITEMS, start=1)
    }
    inputs = {name: f"Input.{name}" for name in (*ITEMS, "tuple_id", "group")}
    kept = frame.select(*inputs, "annotator").rename(inputs | {"annotator": "WorkerId"})
    return kept.with_columns(**answers)


def joined(frame):
    """Return two files with headers, one after the other."""
    return frame[:20].write_csv().encode("utf-8-sig") + frame[20:].write_csv().encode("utf-8-sig")


FILES = {
    "UTF-16": lambda frame: frame.write_csv().encode("utf-16"),
    "UTF-16 with tabs": lambda frame: frame.write_csv(separator="\t").encode("utf-16"),
    "sep line": lambda frame: b"sep=;\r\n" + frame.write_csv(separator=";").encode(),
    "joined files": joined,
    "header in capitals": lambda frame: frame.rename(str.upper).write_csv().encode(),
    "K&M's names": lambda frame: (
        with_names(frame, item="Item", best="BestItem", worst="WorstItem").write_csv().encode()
    ),
    "Hollis's names": lambda frame: with_names(frame, item="option").write_csv().encode(),
    "Hollis's sample": lambda frame: without_chosen(frame).write_csv().encode(),
    "other names": lambda frame: (
        with_names(frame, item="word ", best="Most", worst="Least").write_csv().encode()
    ),
    "radio buttons": lambda frame: radio_buttons(frame).write_csv().encode(),
    "byte order mark": lambda frame: frame.write_csv().encode("utf-8-sig"),
    "CRLF": lambda frame: frame.write_csv(line_terminator="\r\n").encode(),
    "tabs": lambda frame: frame.write_csv(separator="\t").encode(),
    "semicolons": lambda frame: frame.write_csv(separator=";").encode(),
    "quoted": lambda frame: frame.write_csv(quote_style="always").encode(),
    "gzip": lambda frame: gzip.compress(frame.write_csv().encode()),
    "decomposed letters": decomposed,
    "positions from 1": lambda frame: positions(frame).write_csv().encode(),
    "positions from 0": lambda frame: positions(frame, 0).write_csv().encode(),
}


@pytest.mark.parametrize("form", FILES.values(), ids=FILES.keys())
def test_another_file_has_the_same_judgments(form, tmp_path):
    study = STUDIES["eight groups"].renamed(
        [*ITEMS, "best", "worst"], lambda names: [f"\u00e4{name} \u00fc" for name in names]
    )
    frame = study.people.select(pl.exclude("seconds"))
    expected = bws.read_judgments(frame).canonical.digest()
    path = tmp_path / f"judgments.csv{'.gz' if form is FILES['gzip'] else ''}"
    path.write_bytes(form(frame))
    assert bws.read_judgments(path).canonical.digest() == expected


LONG_NAMES = [
    ("id", "block", "label", "value"),
    ("id", "block", "issue", "value"),
    ("pid", "trial", "character", "decision"),
]


@pytest.mark.parametrize("names", LONG_NAMES)
def test_the_long_form_has_the_same_judgments(names):
    frame = STUDIES["eight groups"].people
    expected = bws.read_judgments(frame.drop("tuple_id", "shown")).canonical.digest()
    long = long_form(frame, names)
    assert bws.read_judgments(long).canonical.digest() == expected
    other = dict(zip(names, ("who", "set of four", "thing", "answer"), strict=True))
    parts = dict(zip(("annotator", "tuple_id", "items", "value"), other.values(), strict=True))
    renamed = bws.read_judgments(long.rename(other), parts=parts)
    assert renamed.canonical.digest() == expected


def test_several_files_have_the_same_judgments(tmp_path):
    frame = STUDIES["eight groups"].people
    parts = [frame[:30], frame[30:31], frame[31:].select(reversed(frame.columns))]
    paths = [tmp_path / f"part{n}.csv" for n in range(3)]
    for part, path in zip(parts, paths, strict=True):
        part.write_csv(path)
    expected = bws.read_judgments(frame).canonical.digest()
    assert bws.read_judgments(paths).canonical.digest() == expected
    assert bws.read_judgments(paths[::-1]).canonical.digest() == expected


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_bytes(
        STUDIES["one group"].people.write_csv().replace("0", "\u00e9").encode("cp1252")
    )
    with pytest.raises(bws.InputError, match="in Windows-1252 it is 'é'"):
        bws.read_judgments(path)


REFUSING = {
    "reliability": lambda frame: bws.reliability(frame, trials=2),
    "curve": lambda frame: bws.reliability_curve(frame, trials=2),
    "agreement": bws.agreement,
}


@pytest.mark.parametrize("columns", [[], ["annotator"]], ids=["named", "anonymous"])
@pytest.mark.parametrize("analysis", REFUSING.values(), ids=REFUSING.keys())
def test_a_file_with_a_copy_of_itself_is_refused(analysis, columns):
    frame = STUDIES["eight groups"].people.drop(columns)
    copy = frame.with_columns(tuple_id="again " + pl.col("tuple_id"))
    analysis(frame)
    with pytest.raises(bws.InputError):
        analysis(pl.concat([frame, copy]))
