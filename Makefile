# Everything offramp does, from nothing but Python >= 3.11, make and a network. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JARS := $(VENV)/.jars
SPARK := $(VENV)/.spark
BROWSER := $(VENV)/.browser
DOCS := build/docs-venv
# What has a long form; tests/unit/test_project.py holds it against the files that ask for one.
LONG := tests/interop tests/property tests/unit/groups/show/test_chart_sizes.py \
	$(patsubst %,tests/servers/test_%.py,broker_start burrow delete_groups every_figure fleet idle_groups incident kerberos kraft_hang kraft_idle kraft_made_again kraft_nodes kraft_plan_rights kraft_rehearsal kraft_traps lab lab_ends large_claims metadata_log migrate_offsets node_files protocol_moves rebalance_view rights rolling_upgrade secured_kraft secured_lab snapshot_matches_the_lab spark_modes time_lag_truth znode_rights) \
	$(patsubst %,tests/notebooks/test_%.py,explore explore_health health_report move_offsets nbval runbook runbook_fleet schedules) \
	$(patsubst %,tests/browser/test_%.py,browser hostile kraft_wizard offsets_wizard size wheel wizard)
JUPYTER_FLAGS ?=
export COLUMNS ?= 160
# Where bytecode is not kept, each of the thousand processes that the tests start compiles the kit anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-kraft demo-today lab down test servers check soak excerpts bench pictures docs format lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv installs in a quarter of pip's time; it does not read pip's settings, so it is given the index. If uv fails, pip tries.
# To compress the wheel that uv builds of pyspark's sources would take 20 s.
UV_PIP = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}}" \
	$(BIN)/uv pip install --quiet
UV_INSTALL = $(UV_PIP) --python $(BIN)/python
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "offramp needs Python 3.11 or newer. Name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "This Python has no ensurepip. Install Debian's package python3-venv (apt-get install python3-venv), then run make again."; exit 1; }
	@test -x $(BIN)/python || { echo "[setup] making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "[setup] installing the locked Python packages (1 to 3 minutes the first time; pyspark alone is 450 MB)"
	@sed -n '/^uv==/,/^    #/p' requirements.lock | $(PIP_INSTALL) --require-hashes -r /dev/stdin || { echo "[setup] pip could not install uv: see above. Is the package index reachable?"; exit 1; }
	@$(UV_INSTALL) --require-hashes --config-settings-package 'pyspark:--build-option=--compression=stored' -r requirements.lock \
		|| { echo "[setup] uv could not install them: see above. Trying pip"; $(PIP_INSTALL) --require-hashes -r requirements.lock -c requirements.lock; } \
		|| { echo "[setup] pip could not install them: see above. Is the package index reachable?"; exit 1; }
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(JARS): $(READY) kit/lab/java/jars.sha256
	@$(BIN)/python -c 'from kit.lab.java.jars import main; main()'
	@touch $@

$(BROWSER): $(READY)
	@$(BIN)/python -m tests.browser.chromium
	@touch $@

$(SPARK): $(READY)
	@echo "[setup] keeping Spark's classes loaded, so that it starts in half the time"
	@$(BIN)/python -m kit.spark.make_archive
	@touch $@

setup: $(READY) ## Install what is needed: packages, Java, Kafka and ZooKeeper jars
	@$(MAKE) --no-print-directory -j2 $(JARS) $(SPARK)

demo: setup ## The main job on the embedded lab: twenty groups, two snapshots, a report, a migration with its proof
	@$(BIN)/python -m kit.demo

demo-kraft: setup ## A cluster moved from ZooKeeper to KRaft, back, and there for good, under load, with its proof (six minutes)
	@$(BIN)/python -m kit.demo.kraft

demo-today: setup ## Kafka 4.4 without ZooKeeper: groups of three kinds, a report, a move to KIP-848 and back, a reset and its undo (two minutes)
	@$(BIN)/python -m kit.demo.today

lab: setup ## Start the lab and open JupyterLab on copies of the notebooks (as root: JUPYTER_FLAGS=--allow-root)
	@$(BIN)/offramp lab up
	@test -d build/notebooks || $(BIN)/offramp notebooks build/notebooks  # JupyterLab writes into what it opens.
	@OFFRAMP_PROFILE_FILE="$$($(BIN)/offramp lab profile)" $(BIN)/jupyter lab --notebook-dir=. $(JUPYTER_FLAGS) build/notebooks/explore/group.ipynb

down: $(READY) ## Stop the lab
	@$(BIN)/offramp lab down

check: $(READY) ## The quick part: lint, types, import rules, unit tests, the quicker property tests; OFFRAMP_PROMTOOL names a promtool that is not on PATH
	@$(BIN)/ruff format --check --quiet kit widgets tests
	@$(BIN)/ruff check --quiet kit widgets tests
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow" tests/unit tests/property

test: $(READY) ## All tests, on real servers and in a real browser
	@$(MAKE) --no-print-directory -j2 check servers
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder -m slow

servers: $(JARS) $(SPARK) $(BROWSER)
	@$(BIN)/python -c 'from kit.lab.java import jars; jars.main(jars.ALL_SETS)'
	@$(BIN)/python -m tests.servers.optional_setup
	@$(BIN)/python -m kit.lab.make_archives

soak: setup $(BROWSER) ## The long form, under five hours, with a summary of all scenes: toggles, joins, kills, simulations, dual write under faults, a big rehearsal, moves to KRaft, 10,000 groups, an incident of an hour, an hour beside Burrow where BURROW names its binary, lag in time against the truth, a history ended at each change of a file, each schedule of the docs, each trap of a move to KRaft, and the variants of what make test tries once. After an interruption it continues; delete build/soak to begin again
	@OFFRAMP_SOAK=1 $(BIN)/python -m tests.soak_summary $(LONG)

excerpts: $(READY) ## Logs of public threads, told as tests/excerpts says: OFFRAMP_EXCERPTS names the folder with their texts
	@$(BIN)/python -m pytest -q tests/unit/rebalances/logs/test_excerpts.py

bench: setup ## Speed against named peers, as ratios of one run; writes build/bench.json; ONLY=growth for one comparison
	@$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY))

pictures: setup $(BROWSER) ## Make the pictures of README and docs anew (docs/pictures): lab, report, wizard, timeline in a browser
	@$(BIN)/python -m tests.pictures

$(DOCS)/.ready: $(READY) pyproject.toml
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(DOCS)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
		| $(UV_PIP) --python $(DOCS)/bin/python -r /dev/stdin
	@touch $@

docs: $(DOCS)/.ready ## Build the docs as a site, build/site/index.html; a dead link or anchor is an error
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "build/site/index.html"

format: $(READY) ## Format the code
	@$(BIN)/ruff format kit widgets tests
	@$(BIN)/ruff check --fix kit widgets tests

lock: $(READY) ## Pin the newest packages: requirements.lock and environment.yml
	@$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --extra dev --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" --output-file requirements.lock
	@$(BIN)/python -m tests.environment

clean: ## Remove what was installed and built here (not the cache of jars)
	rm -rf $(VENV) build *.egg-info
