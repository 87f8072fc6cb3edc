# Needs Python 3.11 or newer and make.
#   make reproduce   reproduces the paper's tables and figures
#   make test        runs the test suite
#   make test-gpu    runs the tests that need a GPU
#   make lint        checks style, types and import layers
#   make docs        builds the documentation into site/; warnings are errors
#   make figures     redraws the Pathworld and discount figures of the documentation

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The constraints also apply to the tools that build the package.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: reproduce test test-gpu lint docs figures clean

reproduce: $(VENV)/.installed
	@echo "Pathworld: the paper's tables and our results, and the figures ..."
	@$(BIN)/multihorizon pathworld --out reproduced/pathworld
	@echo
	@echo "The discount of the published Atari agents ..."
	@$(BIN)/multihorizon discount --out reproduced/discount
	@echo
	@echo "The paper's table of sixty games, and its statistics ..."
	@$(BIN)/multihorizon report --paper --out reproduced/paper
	@echo
	@echo "Rainbow and Hyper-Rainbow: three seeds learn to forage, and are evaluated under hazard (about a minute) ..."
	@$(BIN)/multihorizon foraging

test: $(VENV)/.installed-dev
	@echo "Running the tests ..."
	@$(BIN)/python -m pytest

test-gpu: $(VENV)/.installed-dev
	@echo "Running the tests that need a GPU ..."
	@$(BIN)/python -m pytest -o addopts="-q -rs --durations=5" tests_gpu

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The option --quiet would hide warnings from --strict.
docs: $(VENV)/.installed-docs
	@echo "Building the documentation into site/ ..."
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

figures: $(VENV)/.installed
	$(BIN)/multihorizon pathworld --out docs/figures
	$(BIN)/multihorizon discount --out docs/figures
	rm docs/figures/*.json

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("multihorizon needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + "; choose a newer version with: make PYTHON=python3.12")'
	@echo "Creating the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing multihorizon into $(VENV) ..."
	@$(INSTALL) '.[minatar,atari,video]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing multihorizon and its test tools into $(VENV) ..."
	@$(INSTALL) '.[minatar,atari,video,ray,dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing multihorizon and its documentation tools into $(VENV) ..."
	@$(INSTALL) '.[minatar,atari,video,docs]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) reproduced site
