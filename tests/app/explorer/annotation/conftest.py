"""A study at a real service that listens here: the fixtures of mturk's tests of collecting."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[4]
SPEC = importlib.util.spec_from_file_location(
    "collecting_fixtures", ROOT / "tests" / "mturk" / "collecting" / "conftest.py"
)
COLLECTING = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(COLLECTING)
running, files = COLLECTING.running, COLLECTING.files
make_study, study = COLLECTING.make_study, COLLECTING.study
no_keys_of_this_machine = COLLECTING.no_keys_of_this_machine
