# Every verb sets up its own environment from a fresh clone; nothing but Python >= 3.11 and a package index is needed.
PYTHON ?= python3
# Another Python has an environment of its own beside the usual one, such as .venv-3.13.
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
BIN := $(VENV)/bin
# The tests start hundreds of processes: what all of them import is compiled once, and not by each.
unexport PYTHONDONTWRITEBYTECODE

INTERPRETER := $(addprefix tests/instrumentation/test_,$(addsuffix .py, \
	clock_reads codec commands completions comprehensions concurrency kept_errors manual randomness scope shims timed_waits tools)) \
	$(addprefix tests/replay/isolation/test_,callers.py carry.py frames.py guard.py) tests/replay/reexecution/test_clock.py

.PHONY: demo test interpreter backends check fix bench conformance fuzz foreign frameworks full wheel clean

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev
	touch $@

demo: $(VENV)/.ready ## Record a small agent, replay it, change it.
	@$(BIN)/spanreplay demo

test: $(VENV)/.dev ## Run the tests.
	$(BIN)/pytest --numprocesses auto --dist worksteal --ignore tests/backends

interpreter: $(VENV)/.dev ## Those tests that may come out differently on another Python: PYTHON=python3.13.
	$(BIN)/pytest --numprocesses auto --dist worksteal $(INTERPRETER)

backends: $(VENV)/.dev ## Through a real Collector into a real Jaeger and back; skipped where they could not be built.
	$(BIN)/pytest tests/backends --numprocesses auto

check: $(VENV)/.dev ## Style, types, layers.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/pyright --pythonversion 3.14
	$(BIN)/lint-imports

fix: $(VENV)/.dev ## Mend what can be mended by a machine.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.dev ## Measure; results also in bench-results.json.
	PYTHONPATH=tests $(BIN)/python -m bench

conformance: $(VENV)/.dev ## Recorders of agent runs, and this one, on the same programs; makes an environment for each. DRIVERS=a b for some.
	PYTHONPATH=tests $(BIN)/python -m conformance $(DRIVERS) --output tests/conformance/results.json || test $$? -eq 1
	PYTHONPATH=tests $(BIN)/python -m conformance.page

foreign: $(VENV)/.dev ## Run agents of seven frameworks again from what others recorded of them; makes an environment for each.
	SPANREPLAY_FOREIGN=1 $(BIN)/pytest tests/foreign --numprocesses auto --dist worksteal

frameworks: $(VENV)/.dev ## Record and replay a real agent of each framework; makes an environment for each. FRAMEWORKS=a,b for some.
	SPANREPLAY_FRAMEWORKS=$(or $(FRAMEWORKS),all) $(BIN)/pytest tests/frameworks --numprocesses auto --dist worksteal

full: $(VENV)/.dev ## The tests at the sizes that are claimed, those of `foreign` and `frameworks` too.
	SPANREPLAY_FOREIGN=1 SPANREPLAY_FRAMEWORKS=all SPANREPLAY_TEST_SIZE=full $(BIN)/pytest --numprocesses auto --dist worksteal --timeout 1800 --durations 60

$(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group fuzz
	touch $@

fuzz: $(VENV)/.fuzz ## Damaged and odd input for every reader, led by what the code does with it; SECONDS for each, JOBS at once.
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(or $(SECONDS),60) --jobs $(or $(JOBS),1)

wheel: $(VENV)/.dev ## Build the wheel and the source archive into dist/.
	rm -rf dist
	$(BIN)/python -m build --quiet

clean: ## Remove what the other verbs made.
	rm -rf .venv .venv-* dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
