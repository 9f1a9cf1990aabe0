"""Look the pinned dependencies up among known vulnerabilities: python .ci/audit.py PIP-AUDIT FILE.

pip-audit reports "no known vulnerabilities" also where the package index has no data on vulnerabilities. So
it is first run on a release that is known to be vulnerable: if it does not report that one, the dependencies
are not audited, and a message says so.

Exit status: 0 if no pinned version is vulnerable or the database is not available, 1 if one is vulnerable or
unknown to the database.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

KNOWN_VULNERABLE = "django==1.11.0"  # CVE-2017-12794 and later ones; not a dependency
TIMEOUT_SECONDS = "5"


def audit(program: str, requirements: Path) -> tuple[list[dict[str, object]], str]:
    """Return pip-audit's entry for each dependency, empty where it gave no answer, and its messages."""
    command = [program, "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    command += [
        "--timeout",
        TIMEOUT_SECONDS,
        "--format",
        "json",
        "--requirement",
        str(requirements),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    try:
        return json.loads(process.stdout)["dependencies"], process.stderr
    except (ValueError, KeyError):
        return [], process.stderr


def is_available(program: str) -> bool:
    """Return whether the database reports a release that is known to be vulnerable."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(f"{KNOWN_VULNERABLE}\n")
        entries, _ = audit(program, requirements)
    return any(entry.get("vulns") for entry in entries)


def main(program: str, requirements: str) -> int:
    """Print what was audited and every problem; return the exit status."""
    if not Path(program).exists():
        print(f"dependencies not audited: {program} could not be installed")
        return 0
    if not is_available(program):
        print("dependencies not audited: the vulnerability database is not available")
        return 0
    entries, messages = audit(program, Path(requirements))
    if not entries:
        print(messages, f"pip-audit gave no answer for {requirements}", sep="\n", file=sys.stderr)
        return 1
    problems = [
        f"{entry['name']} {entry.get('version', '')}: "
        + (entry.get("skip_reason") or ", ".join(vuln["id"] for vuln in entry["vulns"]))
        for entry in entries
        if entry.get("skip_reason") or entry.get("vulns")
    ]
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(entries)} dependencies audited, {len(problems)} vulnerable or unknown")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
