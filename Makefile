# `make run` and `make test` are the two commands; each sets up what it needs. PYTHON picks the interpreter (3.11 or later).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where neither gcc nor clang is, zig's clang comes as a Python package.
COMMA := ,
EXTRAS := test,check$(if $(shell command -v gcc || command -v clang),,$(COMMA)zig)

.PHONY: setup run test check bench audit clean

setup: $(STAMP)

# PIP_NO_CACHE_DIR and friends are the user's; an interrupted install leaves no stamp and is repeated.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelwright needs Python 3.11 or later, found " + sys.version.split()[0])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $(STAMP)

run: setup
	@$(BIN)/kernelwright run quickstart --fresh

test: setup
	$(BIN)/python -P -m pytest -n auto

# mypy does not follow an editable install's import hook, so it checks a fresh copy of what a wheel would hold.
check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build/typecheck && $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/typecheck .
	cd build/typecheck && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml --python-executable ../../$(BIN)/python -p kernelwright
	$(BIN)/lint-imports --no-logo

bench: setup
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/spine.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/cpu_path.py
	$(BIN)/python benchmarks/cpu_model.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/judge.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/statistics.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/search.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/gpu_model.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/tasks.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/drivers.py
	$(BIN)/python benchmarks/stopping.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/sparse.py
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks/sparse_crossover.py
	$(BIN)/python benchmarks/compiler.py --only figures --only legality --only cache --only times --only named
	$(BIN)/python benchmarks/agents.py

# The slow audits: kill -9 at a hundred places, every figure of the mission documents, and the judge itself.
audit: setup
	$(BIN)/python benchmarks/spine.py --only kill
	$(BIN)/kernelwright figures
	$(BIN)/python benchmarks/compiler.py --only refusals --only evidence --only random
	$(BIN)/kernelwright audit cheats
	$(BIN)/kernelwright audit correctness
	$(BIN)/kernelwright audit noise
	$(BIN)/kernelwright audit judges
	$(BIN)/kernelwright audit judges --calm
	$(BIN)/python -P -m pytest -m audit

clean:
	rm -rf build $(VENV) *.egg-info
