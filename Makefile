# vitedu: `make` lists the targets. Every target sets up .venv first, once; a second run does not.
# `python -m vitedu` has setup, lab, test, bundle and slug too, where there is no make.

PYTHON ?= python3
LAB_ARGS ?=
TEST_ARGS ?=
# for pip, such as PIP_ARGS="--index-url https://mirror.example/simple"; then torch is taken from there, too
PIP_ARGS ?=
export PIP_ARGS

CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

# threads of torch that wait for each other on a busy machine shall soon sleep, not spin
ifndef OMP_WAIT_POLICY
GOMP_SPINCOUNT ?= 1000
export GOMP_SPINCOUNT
endif

VENV := .venv
# the tests' own packages stand apart: nbgrader would put its menus into a student's JupyterLab
TEST_VENV := .venv-test
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PY := $(BIN)/python
TEST_PY := $(subst $(VENV)/,$(TEST_VENV)/,$(PY))
PYTEST := $(PY) -m vitedu test --

# of the tour and the pages, whose readers run nothing: models that have learned
PROFILE = VITEDU_PROFILE=$(or $(VITEDU_PROFILE),laptop)

.DEFAULT_GOAL := help
.PHONY: help setup lab test notebooks proof bench-checks bench-grade bench-train honest check tour site solve bundle lint slug colab browser clean

help: ## list the targets
	@echo "make TARGET [PYTHON=python3.12] [LAB_ARGS=...] [TEST_ARGS=...]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.lab ## create .venv and install requirements.txt and the package

lab: $(VENV)/.lab ## set up if need be, lay the notebooks in my-notebooks, open JupyterLab there
	$(PY) -m vitedu lab --lab-args="$(LAB_ARGS)"

test: $(TEST_VENV)/.test ## set up if need be, pass every test
	$(PYTEST) $(TEST_ARGS)

notebooks: $(TEST_VENV)/.test ## run all notebooks, as committed and solved, in the quick profile
	VITEDU_WHOLE=1 $(PYTEST) -m notebook tests/test_notebooks.py $(TEST_ARGS)

proof: $(VENV)/.lab ## judge mistakes, right answers and mutants (EXERCISE=patchify, or all, which takes half an hour on two fast cores; ANSWERS=my_answers.py)
	PYTHONPATH=$(CURDIR)/tests $(PY) -m proof $(EXERCISE) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ANSWERS),--audit $(ANSWERS))

bench-checks: $(TEST_VENV)/.test ## how long a student waits for a verdict
	PYTHONPATH=$(CURDIR)/tests $(TEST_PY) -m bench checks $(BENCH_ARGS)

bench-grade: $(TEST_VENV)/.test ## grade a made class of untrusted notebooks, beside nbgrader (BENCH_ARGS="--students 24")
	PYTHONPATH=$(CURDIR)/tests $(TEST_PY) -m bench grade $(BENCH_ARGS)

bench-train: $(TEST_VENV)/.test ## our training step beside timm's, torchvision's, vit-pytorch's (pip install vitedu[bench])
	PYTHONPATH=$(CURDIR)/tests $(TEST_PY) -m bench train $(BENCH_ARGS)

honest: $(TEST_VENV)/.test ## grade honest notebooks as a class and print what each loses (NAMES="own_"; RUN=1: run them first)
	PYTHONPATH=$(CURDIR)/tests $(TEST_PY) -m proof.honest $(if $(RUN),--run) $(NAMES)

check: $(TEST_VENV)/.test ## the short round: lint, types, units and doctests; no notebook, no bank, no class
	@mkdir -p build; $(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; \
	$(PYTEST) -q --maxprocesses 2 -m "not notebook and not slow and not bank" $(TEST_ARGS); failed=$$?; \
	wait $$lint || failed=1; cat build/lint.txt; exit $$failed

tour: $(VENV)/.lab ## run the whole solved course, 30 to 60 minutes, into build/runs
	$(PROFILE) $(PY) -m vitedu tour notebooks

site: $(TEST_VENV)/.test ## the course as pages in build/site, from the tour's runs; INSTRUCTOR=1: with solutions, in build/site-instructor
	$(PROFILE) $(TEST_PY) -m vitedu site notebooks $(if $(INSTRUCTOR),--instructor)

solve: $(VENV)/.lab ## write the solved notebooks to build/solved
	$(PY) -m vitedu solve notebooks --out build/solved

bundle: $(VENV)/.lab ## the package and all wheels that it needs in build/bundle, for machines without a network
	$(PY) -m vitedu bundle

lint: $(TEST_VENV)/.test ## check style, types, and form, budgets, links and sentences of the notebooks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(TEST_PY) -m mypy
	$(PY) -m vitedu lint notebooks
	PYTHONPATH=$(CURDIR)/tests $(PY) -m proof.inspection
	$(TEST_PY) -m pytest -q -p no:nbval tests/test_core.py

slug: $(VENV)/.lab ## write REPO=owner/name into all links; without REPO, renew them for this version
	$(PY) -m vitedu slug $(REPO)

colab: $(TEST_VENV)/.test ## run each notebook alone with Colab's versions (5 GB, PYTHON=python3.12)
	"$(PYTHON)" -m venv build/colab
	build/colab/bin/python -m pip install --quiet $(PIP_ARGS) --requirement tests/colab.txt
	VITEDU_COLAB_PYTHON=$(CURDIR)/build/colab/bin/python $(TEST_PY) -m pytest tests/test_colab.py -rP -m network $(TEST_ARGS)

define IN_CHROMIUM
@test -x "$(CHROMIUM)" || { echo "There is no Chromium here. On Debian and Ubuntu: apt install chromium."; \
  echo "Or name a browser of its family: make $@ CHROMIUM=/usr/bin/google-chrome"; exit 2; }
$(TEST_PY) -m pip install --quiet $(PIP_ARGS) --editable ".[browser]"
CHROMIUM="$(CHROMIUM)" VITEDU_LAB_PYTHON=$(CURDIR)/$(PY) $(PYTEST) -n 2 -m browser $(TEST_ARGS)
endef

browser: $(TEST_VENV)/.test ## drive JupyterLab and the pages in Chromium, as students see them (CHROMIUM=/path/to/it)
	$(IN_CHROMIUM) tests/test_browser.py tests/test_site.py

clean: ## remove build/, caches and the environments
	rm -rf $(VENV) $(TEST_VENV) build .pytest_cache .ruff_cache .mypy_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

# The stamps: newer than what they depend on means that the set-up stands.
$(VENV)/.lab: requirements.txt pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name yours:"; \
	  echo "  make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12"; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "vitedu needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)."; \
	  echo "Name a newer one: make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12"; exit 2; }
	@"$(PYTHON)" -m vitedu setup
	@touch $@

$(TEST_VENV)/.test: $(VENV)/.lab
	@$(PY) -m vitedu setup --test
	@touch $@
