"""Reading and writing of items, tuples, judgments and scores, one module per format."""

from bws.files.formats import as_judgments, format_names, formats, read_judgments
from bws.files.items import Items, read_item_sets, read_items
from bws.files.judgments import OnInvalid, judgments_from_records, without_annotators
from bws.files.scores import ScoreForm, read_scores, write_scores
from bws.files.soft_targets import read_soft_targets, write_soft_targets
from bws.files.tuples import TupleForm, as_tuples, read_tuples, write_tuples
from bws.files.writing import JudgmentForm, write_judgments

__all__ = [
    "Items",
    "JudgmentForm",
    "OnInvalid",
    "ScoreForm",
    "TupleForm",
    "as_judgments",
    "as_tuples",
    "format_names",
    "formats",
    "judgments_from_records",
    "read_item_sets",
    "read_items",
    "read_judgments",
    "read_scores",
    "read_soft_targets",
    "read_tuples",
    "without_annotators",
    "write_judgments",
    "write_scores",
    "write_soft_targets",
    "write_tuples",
]
