"""What is not collected: modules of a package that is not installed, and modules without examples."""

from importlib.util import find_spec
from pathlib import Path

EXTENSIONS = {
    "giccs/evaluation/inspect_tasks": "inspect_ai",
    "giccs/evaluation/training_evaluator.py": "sentence_transformers",
}
collect_ignore = [path for path, package in EXTENSIONS.items() if find_spec(package) is None]
TESTS = Path(__file__).parent / "tests"


def pytest_ignore_collect(collection_path):
    """Do not import modules of the packages that have no example to run."""
    is_module = collection_path.suffix == ".py" and not collection_path.is_relative_to(TESTS)
    return True if is_module and b">>>" not in collection_path.read_bytes() else None
