"""make audit: findings fail, a clean answer passes, and no answer is reported as none.

A stand-in program answers in pip-audit's JSON, since its database cannot be reached from every machine.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VULNERABLE = {"name": "django", "version": "1.11.0", "vulns": [{"id": "PYSEC-2017-9"}]}
CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
FINDING = {"name": "jinja2", "version": "3.1.0", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]}
NOT_FOUND = {"name": "numpy", "skip_reason": "Dependency not found on PyPI"}
UNAVAILABLE = "dependencies not audited: the vulnerability database is not available\n"

PROGRAM = """#!{python}
import sys
answers = {answers!r}
requirements = open(sys.argv[-1]).read()
answer = answers["django" if "django" in requirements else "pins"]
print(answer)
sys.exit(answer is None)
"""


@pytest.mark.parametrize(
    ("canary", "pins", "status", "output"),
    [
        ([VULNERABLE], [CLEAN], 0, "1 dependencies audited, 0 vulnerable or unknown\n"),
        (
            [VULNERABLE],
            [CLEAN, FINDING],
            1,
            "jinja2 3.1.0: PYSEC-1, PYSEC-2\n2 dependencies audited, 1 vulnerable or unknown\n",
        ),
        ([VULNERABLE], [NOT_FOUND], 1, "1 dependencies audited, 1 vulnerable or unknown\n"),
        ([{**NOT_FOUND, "name": "django"}], [NOT_FOUND], 0, UNAVAILABLE),
        ([{**VULNERABLE, "vulns": []}], [CLEAN], 0, UNAVAILABLE),
        (None, [CLEAN], 0, UNAVAILABLE),
        ([VULNERABLE], None, 1, ""),
    ],
    ids=["clean", "finding", "unknown pin", "index without data", "mirror", "no network", "crash"],
)
def test_the_answer_of_pip_audit_decides(canary, pins, status, output, tmp_path):
    answers = {
        name: "Traceback" if entries is None else json.dumps({"dependencies": entries, "fixes": []})
        for name, entries in (("django", canary), ("pins", pins))
    }
    program, pinned = tmp_path / "pip-audit", tmp_path / "constraints.txt"
    program.write_text(PROGRAM.format(python=sys.executable, answers=answers))
    program.chmod(0o755)
    pinned.write_text("numpy==2.4.6\n")
    process = subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit.py", program, pinned],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == status, process.stderr
    assert process.stdout.endswith(output)


def test_an_offline_machine_is_not_audited():
    process = subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit.py", "no/pip-audit", ROOT / "constraints.txt"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0
    assert process.stdout == "dependencies not audited: no/pip-audit could not be installed\n"


def test_the_makefile_names_no_package_index():
    assert "://" not in (ROOT / "Makefile").read_text()
