"""csts-sample, which ships with the package: as the card says it is."""

from collections import Counter

from giccs.csts.data import SAMPLE, SPLITS, check_csts, pairs, read_csts


def test_every_pair_has_two_rows_and_nothing_is_wrong():
    dataset, problems = check_csts(SAMPLE)
    assert problems == []
    assert dataset.warnings == ()
    assert len(dataset.instances) == 620
    assert len(pairs(dataset)) == 310
    sizes = [len(read_csts(SAMPLE, split).instances) for split in SPLITS]
    assert sizes == [380, 120, 120]


def test_the_first_row_is_the_more_similar_and_all_labels_occur():
    rows = read_csts(SAMPLE).instances
    both = zip(rows[::2], rows[1::2], strict=True)
    assert all(one.pair == other.pair and one.label > other.label for one, other in both)
    labels = Counter(row.label for row in rows)
    assert set(labels) == {1, 2, 3, 4, 5}
    assert max(labels.values()) < 0.35 * len(rows)


def test_no_sentence_occurs_in_two_pairs():
    rows = read_csts(SAMPLE).instances[::2]
    sentences = [text for row in rows for text in (row.sentence1, row.sentence2)]
    assert len(set(sentences)) == len(sentences) == 620
