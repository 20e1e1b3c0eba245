# make demo | test | hidden | lint | bench | paper | notebooks | docs | setup     (each sets itself up)
.DEFAULT_GOAL := help
BIN := .venv/bin

help:  ## what there is
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

.venv/.ready: requirements.lock pyproject.toml scripts/setup.sh scripts/uv.lock
	@scripts/setup.sh

setup: .venv/.ready  ## .venv with locked dependencies, and ns-2 where allowed

demo: setup  ## each model beside ns-2: tables, errors, pictures in out/
	$(BIN)/python scripts/demo.py

test: setup  ## all tests
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# Files in which a test looks for a simulator or a compiler, or starts a process that may.
LOOKING := $(addprefix tests/packets/test_, campaign.py engine.py evaluation_table2.py ns2_run.py \
  ns2_script.py ns2_trace.py ns3_run.py reference.py) \
  tests/commands/test_every_command.py tests/test_kernel_recipe.py

hidden: setup  ## the tests that look for simulators, as on a machine that has none
	$(BIN)/pytest -n 2 --dist loadfile --hide-engines $(LOOKING)

lint: setup  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup  ## timings as ratios against named rivals, and accuracy campaigns
	@for b in benchmarks/*.py; do \
	  case $$b in benchmarks/fuzz_*|benchmarks/accuracy*) continue;; esac; \
	  echo "== $$b"; $(BIN)/python -m "$$(echo "$${b%.py}" | tr / .)" || exit 1; done

paper: setup  ## the papers' equations, tables, figures and claims, each with a verdict
	-$(BIN)/vegasmodel paper

notebooks: setup  ## execute all notebooks; pages in out/notebooks/
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r requirements-notebooks.lock
	$(BIN)/python scripts/notebooks.py

docs: setup  ## the documentation site in out/site/
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r requirements-docs.lock
	$(BIN)/python scripts/site.py

lock:  ## make the requirements*.lock again from pyproject.toml, and the hashes of uv itself
	sed -n 's/ .*//; /^uv==/p' scripts/uv.lock | $(BIN)/uv pip compile --quiet --universal --generate-hashes \
	  --no-header --no-annotate - -o scripts/uv.lock.new && mv scripts/uv.lock.new scripts/uv.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate -o requirements.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --extra notebooks --constraint requirements.lock --universal \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-notebooks.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --extra docs --constraint requirements.lock \
	  --constraint requirements-notebooks.lock --universal \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-docs.lock

clean:  ## remove what was built
	rm -rf .venv out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup demo test hidden lint bench paper notebooks docs lock clean
