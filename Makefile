# vitedu: `make` lists the targets. Every target sets up .venv first, once; a second run does not.

PYTHON ?= python3
LAB_ARGS ?=
TEST_ARGS ?=

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PY := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup lab test tour solve lint clean

help: ## list the targets
	@echo "make TARGET [PYTHON=python3.12] [LAB_ARGS=...] [TEST_ARGS=...]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.lab ## create .venv and install requirements.txt and the package

lab: $(VENV)/.lab ## set up if need be, open JupyterLab on notebook 01
	$(PY) -m jupyterlab $(LAB_ARGS) notebooks/01_patches.ipynb

test: $(VENV)/.test ## set up if need be, pass every test
	$(PY) -m pytest $(TEST_ARGS)

tour: $(VENV)/.lab ## run the whole solved course, one HTML page a notebook in build/tour
	$(PY) -m vitedu tour notebooks --out build/tour

solve: $(VENV)/.lab ## write the solved notebooks to build/solved
	$(PY) -m vitedu solve notebooks --out build/solved

lint: $(VENV)/.lab ## check the style of the code and the shape of the notebooks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m vitedu lint notebooks

clean: ## remove build/, caches and .venv
	rm -rf $(VENV) build .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

# The stamps: newer than what they depend on means that the set-up stands.
$(VENV)/.lab: requirements.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "There is no $(PYTHON) here. Install Python 3.10 or newer, or name yours:"; \
	  echo "  make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12"; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "vitedu needs Python 3.10 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)."; \
	  echo "Name a newer one: make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12"; exit 2; }
	@test -x $(PY) || "$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) could not create $(VENV); on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@echo "Setting up $(VENV), once; torch is large, this may take minutes."
	$(PY) -m pip install --requirement requirements.txt --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.lab
	$(PY) -m pip install --quiet --editable ".[test]"
	@touch $@
