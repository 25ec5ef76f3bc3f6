# Every target sets itself up: python 3.11+, pip, venv and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

TOOLS := .venv-tools
OLDEST := .venv-oldest
CASES ?= 20000
SEED ?= 1

.PHONY: demo test test-more test-slow test-oldest test-tools test-browser fuzz lint sentences bench docs package clean

$(VENV)/demo.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	touch $@

$(VENV)/dev.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/demo.stamp

$(VENV)/docs.stamp: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

# An environment of its own: what these libraries pin must not decide what everything else is tested with.
$(TOOLS)/tools.stamp: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[tools]'
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'causalml>=0.15' \
		|| echo 'CausalML does not install here; its tests are skipped.'
	touch $@

# The oldest versions that pyproject.toml declares, exactly.
$(OLDEST)/oldest.stamp: pyproject.toml .ci/oldest_versions.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python .ci/oldest_versions.py demo dask > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(OLDEST)/oldest.txt pytest pytest-xdist hypothesis polars duckdb
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/orthocal demo

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m 'not slow and not more' --numprocesses 2 --cov --cov-report= --cov-fail-under=0

# What takes longer: whole experiments, documentation, clusters of processes. Coverage is that of both.
test-more: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m 'more and not slow' --numprocesses 2 --cov --cov-append --cov-report=term

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/statistics tests/contracts -m slow -rA --numprocesses 2

# The core and the command line with the oldest versions declared; old libraries warn of newer ones, which is no failure.
test-oldest: $(OLDEST)/oldest.stamp
	$(OLDEST)/bin/python -m pytest -o filterwarnings=default -m 'not slow and not more' --numprocesses 2 --quiet \
		tests/test_observations.py tests/test_frames.py tests/test_calibrators.py tests/test_solvers.py tests/test_mapfile.py \
		tests/test_orthogonal.py tests/test_sklearn.py tests/test_streams.py tests/test_cli.py tests/test_cli_maps.py \
		tests/test_page.py tests/test_plots.py tests/test_hostile_inputs.py

# Hostile cases by number: make fuzz CASES=20000 SEED=2. A case that fails is printed as small as it is, with how to do it again.
fuzz: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED)

# Needs chromium on the machine: apt-get install chromium
test-browser: $(VENV)/docs.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	ORTHOCAL_BROWSER=needed $(BIN)/python -m pytest tests/browser --numprocesses 2

test-tools: $(TOOLS)/tools.stamp
	$(TOOLS)/bin/python -m pytest tests/tools -rs --numprocesses 2

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every sentence that a user can see, by file, to be read before a release.
sentences:
	@$(PYTHON) .ci/sentences.py

bench: $(TOOLS)/tools.stamp
	$(TOOLS)/bin/python benchmarks/run.py

# Into site/, from the pages and docstrings; pictures are drawn by the pages' own code, nothing is fetched.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The source distribution and the wheel, into dist/; the wheel is installed into an empty environment and does the main job.
package:
	rm -rf dist .venv-package
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check build
	.venv-package/bin/python -m build --quiet --outdir dist
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[demo]"
	cd dist && ../.venv-package/bin/orthocal demo --out ../.venv-package/demo > /dev/null
	.venv-package/bin/python -c 'import orthocal; print("orthocal", orthocal.__version__, "installs from its wheel and runs the demo")'

clean:
	rm -rf site dist .venv-package $(VENV) $(TOOLS) $(OLDEST) .mypy_cache .ruff_cache .pytest_cache
