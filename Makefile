# Everything a newcomer runs. Needs only Python 3.11+ and make; every target that needs the environment builds it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKS := requirements/build.txt requirements/dev.txt
DATA ?= .headwater
PORT ?= 8080

.DEFAULT_GOAL := help
.PHONY: help setup demo up init test check lint format types contracts openapi lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## build .venv from the pinned, hashed requirements (nothing to do when it matches them)
	@$(PYTHON) requirements/build_environment.py --venv $(VENV) $(LOCKS)

demo: setup ## load a year of real flights, follow the feed, check that it folds to the table
	@$(BIN)/headwater demo flights

up: setup ## start everything on 127.0.0.1:$(PORT), files under $(DATA)
	@$(BIN)/headwater up --port $(PORT) --data $(DATA)

init: setup ## migrate HEADWATER_DATABASE_URL to head; make the first tenant and operator key
	@$(BIN)/headwater init

test: check ## everything CI checks
	@$(BIN)/python -m pytest tests

check: setup lint types contracts

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## let ruff repair what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup ## mypy, strict on app/lake and app/services
	@$(BIN)/mypy

contracts: setup ## the direction of imports
	@$(BIN)/lint-imports

openapi: setup ## write the schema that the service serves to openapi/openapi.json
	@mkdir -p openapi
	@$(BIN)/headwater openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json

# One resolution for every platform and Python from 3.11; each set keeps to the versions of the one before it.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate
lock: setup ## resolve requirements/*.in again (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) $(UPGRADE) requirements/dev.in -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt requirements/build.in -o requirements/build.txt
	$(COMPILE) -c requirements/dev.txt requirements/runtime.in -o requirements/runtime.txt
	$(COMPILE) $(UPGRADE) requirements/bench.in -o requirements/bench.txt

clean: ## remove the environment and caches; data directories stay
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
