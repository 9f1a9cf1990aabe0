"""A study at a real service that listens here: the fixtures of the tests of mturk."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[4]
SPEC = importlib.util.spec_from_file_location(
    "mturk_fixtures", ROOT / "tests" / "mturk" / "conftest.py"
)
MTURK = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MTURK)
running, files = MTURK.running, MTURK.files
make_study, study = MTURK.make_study, MTURK.study
no_keys_of_this_machine = MTURK.no_keys_of_this_machine
