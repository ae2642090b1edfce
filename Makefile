# Commands for developers. Each installs what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := --quiet --disable-pip-version-check
PINNED := --no-deps --no-compile
ARGS ?=

# Production settings for Django's checks.
PRODUCTION := DEBUG=false HTTPS=true ALLOWED_HOSTS=lcm.example.org \
	SECRET_KEY=only-for-checks-7b1f0c94e2d85a36d0f7c1e9a4b28c63f5

# Always write bytecode: a control plane has ten processes, and each would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run test test-fast lint lint-quick format faults soak bench screenshots replay messages docs docs-images clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '  make %-11s %s\n' "$$name" "$$text"; done

run: $(VENV)/.run-installed ## start LCM with a demo fleet on http://127.0.0.1:8000/
	@DEBUG=$${DEBUG:-true} DEMO=$${DEMO:-true} exec $(BIN)/python manage.py up

test: $(VENV)/.dev-installed ## run all tests on PostgreSQL and SQLite, with a worker and a browser
	@exec $(BIN)/python -m tests.support $(ARGS)

test-fast: $(VENV)/.dev-installed ## run the tests that need no browser and no processes, on SQLite
	@exec $(BIN)/python -m tests.support --fast $(ARGS)

faults: $(VENV)/.dev-installed ## run LCM under faults for 30 minutes and check its invariants
	@exec $(BIN)/python -m tests.end_to_end.faults $(ARGS)

soak: $(VENV)/.dev-installed ## run LCM under load for an hour and record the memory of its processes
	@exec $(BIN)/python -m tests.end_to_end.faults.soak $(ARGS)

bench: $(VENV)/.dev-installed ## run the benchmarks on a private PostgreSQL
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

screenshots: $(VENV)/.dev-installed ## take screenshots of every page at three widths in both themes, into var/screenshots
	@exec $(BIN)/python -m tests.end_to_end.screenshots.every_page $(ARGS)

replay: $(VENV)/.dev-installed ## replay a generated trace with the recommendations applied
	@exec $(BIN)/python -m tests.benchmarks.replay $(ARGS)

messages: $(VENV)/.dev-installed ## write the texts of pages, forms and errors into lcm/locale/en
	@$(BIN)/python -m tests.support.message_catalog

docs: $(VENV)/.dev-installed ## build the documentation into var/site and check its links
	@$(BIN)/mkdocs build --quiet --strict
	@echo "Open var/site/index.html"

docs-images: $(VENV)/.dev-installed ## take the screenshots of the guide from a private demo
	@exec $(BIN)/python -m tests.end_to_end.screenshots.guide $(ARGS)

lint: lint-quick ## check style, types, layers, templates, migrations, settings and the API schema
	$(PRODUCTION) $(BIN)/mypy
	$(PRODUCTION) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

lint-quick: $(VENV)/.dev-installed ## run the quick checks of lint; make test runs them too
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	git ls-files -z 'templates/*.html' | xargs -0 -r $(BIN)/djade --check --target-version 5.2
	$(PRODUCTION) $(BIN)/python manage.py makemigrations --check --dry-run
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

format: $(VENV)/.dev-installed ## format Python and templates
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	git ls-files -z 'templates/*.html' | xargs -0 -r $(BIN)/djade --target-version 5.2

clean: ## remove the virtual environment and caches; data in var/ stays
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "LCM needs Python 3.11 or newer; $(PYTHON) is older. Choose another: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "The virtual environment could not be created. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/.run-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install $(PIP) -c constraints.txt -e .
	@touch $@

# All versions are pinned, so pip resolves no dependencies; modules are compiled on first import. Unpacking takes
# most of the time, so several pip processes fill a new environment. The second pip call completes it.
$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(BIN)/python
	@test -e $(VENV)/.run-installed || xargs -P 4 -n 10 \
		$(BIN)/python -m pip install $(PIP) $(PINNED) <constraints.txt 2>/dev/null || true
	$(BIN)/python -m pip install $(PIP) $(PINNED) -r constraints.txt -e .
	@$(BIN)/python -m pip check $(PIP)
	@touch $@ $(VENV)/.run-installed
