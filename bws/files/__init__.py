"""Reading and writing of items, tuples, judgments and scores, one format a module."""

from bws.files.check import OnInvalid
from bws.files.formats import FORMATS, Form, read_judgments
from bws.files.items import Items, read_item_sets, read_items
from bws.files.judgments import JudgmentForm, judgments_from_records, write_judgments
from bws.files.scores import ScoreForm, read_scores, write_scores
from bws.files.soft_targets import read_soft_targets, write_soft_targets
from bws.files.tuples import TupleForm, read_tuples, write_tuples

__all__ = [
    "FORMATS",
    "Form",
    "Items",
    "JudgmentForm",
    "OnInvalid",
    "ScoreForm",
    "TupleForm",
    "judgments_from_records",
    "read_item_sets",
    "read_items",
    "read_judgments",
    "read_scores",
    "read_soft_targets",
    "read_tuples",
    "write_judgments",
    "write_scores",
    "write_soft_targets",
    "write_tuples",
]
