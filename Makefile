# streamgauge needs Python 3.11 or newer and make; everything else is set up here, once, in .venv. PySpark is
# an archive of 450 MB, so the environment is created once and kept.
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JAVA   := $(VENV)/.java
KAFKA  := $(VENV)/.kafka
BROWSER := $(VENV)/.browser
PYTEST ?= $(BIN)/pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench soak docs lock clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(JAVA) ## Set up everything that Spark needs: Python packages and Java

demo: $(JAVA) ## Set up everything, then measure the sustainable throughput of Spark on this machine
	@$(BIN)/streamgauge run quickstart

test: $(KAFKA) $(BROWSER) ## Set up everything and run the tests: untimed ones on all cores, those in real time one by one
	@$(PYTEST) --durations=20 -n auto --dist loadgroup -m 'not realtime and not soak'
	@$(PYTEST) --durations=20 -m 'realtime and not soak' tests/integration tests/conformance

check: $(READY) ## Check format, lint, types, import rules and architecture rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(PYTEST) tests/architecture

format: $(READY) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(KAFKA) ## Run all benchmarks and print the figures that the documentation states
	@for bench in $$(ls benches/*.py | grep -v '/_'); do \
	    echo "== $$bench"; $(BIN)/python -m benches.$$(basename $$bench .py) || exit 1; \
	done

soak: $(KAFKA) ## Run the slow suites: kill -9 a hundred times, 200 clean trials, ten minutes of load
	@STREAMGAUGE_KILLS=100 $(PYTEST) tests/integration/test_cli_kill.py
	@$(PYTEST) -m soak tests/integration
	@STREAMGAUGE_CONFORMANCE_EVENTS=100000 $(PYTEST) tests/conformance
	@$(PYTEST) tests/soak

docs: $(READY) ## Write the current output of streamgauge into README and the guides
	@$(BIN)/python docs/refresh.py

lock: ## Write constraints.txt again from the newest versions that pyproject.toml allows
	@$(FIND_PYTHON); $(CHECK_VENV); \
	trap 'rm -rf .venv-lock' EXIT; \
	$$python -m venv --clear .venv-lock && \
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,spark,kafka]' && \
	{ head -n 1 constraints.txt; .venv-lock/bin/python -m pip freeze --exclude-editable | grep '=='; } > .venv-lock/pins && \
	mv .venv-lock/pins constraints.txt && echo "constraints.txt: $$(grep -c == constraints.txt) versions"

clean: ## Remove build results; `streamgauge clean` removes runs
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests benches -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The environment is created once, and updated when pyproject.toml or constraints.txt changes. PySpark comes as source
# and is built before the rest, with its own build tools. streamgauge is built with the tools of the environment.
$(READY): pyproject.toml constraints.txt
	@$(FIND_PYTHON); $(CHECK_VENV); \
	if $(BIN)/python -c '' 2>/dev/null; then echo "Bringing $(VENV) up to date ..." >&2; \
	else echo "Setting up $(VENV) with $$($$python --version) ..." >&2; $$python -m venv --clear $(VENV) || exit 1; fi; \
	$(INSTALL) -c constraints.txt hatchling pyspark && \
	$(INSTALL) -c constraints.txt --no-build-isolation -e '.[dev,spark,kafka]' && \
	touch $@

# Spark needs Java. If it is missing, it is installed when the package manager needs no password.
$(JAVA): $(READY)
	@$(BIN)/streamgauge setup spark >&2 && touch $@

# The tests start Kafka brokers. Their jars are fetched once, with Maven, into the user's cache.
$(KAFKA): $(JAVA) src/streamgauge/transports/kafka/jars.toml
	@$(BIN)/streamgauge setup kafka >&2 && touch $@

# The report is tested in a real browser. If it is missing, it is installed when apt needs no password. Otherwise these
# tests are skipped with the reason, and it is tried again the next time.
$(BROWSER): $(READY)
	@if ! $(FIND_BROWSER) && command -v apt-get > /dev/null; then \
	    as_root=; [ "$$(id -u)" = 0 ] || as_root='sudo -n'; \
	    if $$as_root true 2> /dev/null; then \
	        echo "Installing chromium with apt-get ..." >&2; \
	        { $$as_root apt-get -qq update && $$as_root env DEBIAN_FRONTEND=noninteractive \
	            apt-get -qq install --no-install-recommends chromium; } > $(VENV)/browser.log 2>&1 || \
	            { echo "chromium could not be installed, so the tests of the report in a browser are skipped:"; \
	              tail -n 3 $(VENV)/browser.log; } >&2; \
	    fi; \
	fi; if $(FIND_BROWSER); then touch $@; fi

FIND_BROWSER = { found=; for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	if command -v $$name > /dev/null; then found=yes; fi; done; [ -n "$$found" ]; }

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The first Python that is new enough; a name may exist and not work (pyenv's shims), so each is tried.
FIND_PYTHON = python=; for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; done; \
	if [ -z "$$python" ]; then \
	echo "streamgauge needs Python 3.11 or newer; python3 here is $$(python3 --version 2>&1 || echo missing)." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3.11 python3.11-venv), or set another one: make PYTHON=/path/to/python3" >&2; \
	exit 1; fi

CHECK_VENV = if ! $$python -c 'import venv, ensurepip' 2>/dev/null; then \
	echo "$$python has no venv or ensurepip, so it cannot create an environment." >&2; \
	echo "Debian, Ubuntu: apt install $$($$python -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2; \
	exit 1; fi
