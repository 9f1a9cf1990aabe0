"""Modules that extend another package are not collected where it is not installed."""

from importlib.util import find_spec

EXTENSIONS = {
    "giccs/evaluation/inspect_tasks": "inspect_ai",
    "giccs/evaluation/training_evaluator.py": "sentence_transformers",
}
collect_ignore = [path for path, package in EXTENSIONS.items() if find_spec(package) is None]
