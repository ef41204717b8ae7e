# What a person does with a checkout; `make` alone lists it.

VENV ?= .venv
PYTHON ?= python3
# For pytest, as in: make test ARGS="tests/unit/api -k loader"
ARGS ?=
# For images: what the sandbox image is built from, in place of Debian.
BASE ?=

BIN := $(VENV)/bin
SOURCES := crds sandbox-image trainer operator hack/cluster
CLUSTER := -m mlwright_cluster
SCRIPTS := .ci/run $(wildcard hack/*.sh)

.DEFAULT_GOAL := help
.PHONY: help setup quickstart test lint format unit docs crds bench bench-quickstart parity images cluster-up cluster-down clean

help: ## List what can be made
	@echo "mlwright trains language models to do machine-learning engineering, by reinforcement learning."
	@echo
	@echo "  make quickstart          watch a small model learn, in minutes, on this machine"
	@echo "  make test                what a change has to pass"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Settings: VENV=$(VENV) PYTHON=$(PYTHON) ARGS=\"more for pytest\""

setup: ## Make the virtual environment (once; 6 GB, most of it torch)
	@hack/venv.sh "$(VENV)" "$(PYTHON)"

quickstart: setup ## Prepare a task, run the quickstart, write its report
	@hack/quickstart.sh "$(VENV)"

test: lint ## The gates, then every test (the first time builds a Kubernetes: ten minutes)
	@$(if $(ARGS),,PYTHONPATH=hack/cluster $(BIN)/python $(CLUSTER) ready)
	@$(BIN)/python -m pytest $(ARGS)

unit: setup ## The fast tests only
	@$(BIN)/python -m pytest tests/unit $(ARGS)

lint: setup ## ruff, mypy --strict, import-linter, shellcheck
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy $(SOURCES)
	@$(BIN)/lint-imports
	@$(BIN)/shellcheck $(SCRIPTS)

format: setup ## Format, and mend what ruff can
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

docs: setup ## Generate docs/reference from the models and the outcome table
	@$(BIN)/python docs/generate.py

crds: setup ## Generate crds/*.yaml, the CRDs and admission policies, from the models
	@PYTHONPATH=crds $(BIN)/python -m mlwright_crds

bench: setup ## Every benchmark that takes minutes; prints JSON
	@for file in $(wildcard benchmarks/*.py); do \
	  echo "== $$file"; $(BIN)/python "$$file" || exit 1; \
	done

bench-quickstart: setup ## Five seeds and three controls of the quickstart (hours; resumable)
	@$(BIN)/mlwright task prepare examples/tasks/churn
	@$(BIN)/mlwright task prepare examples/tasks/credit
	@$(BIN)/python -m benchmarks.quickstart $(ARGS)

parity: setup ## Our PPO against pinned verl and TRL, each in an environment of its own
	@$(BIN)/python tests/parity/run.py

images: setup ## Build the sandbox image; load it into the cluster if one is up (BASE=image)
	@PYTHONPATH=hack/cluster $(BIN)/python $(CLUSTER) images --base "$(BASE)"

cluster-up: ## A real Kubernetes on this machine: builds it once, prints its KUBECONFIG (root, for a node)
	@PYTHONPATH=hack/cluster $(PYTHON) $(CLUSTER) up

cluster-down: ## End it, with everything that it put on this machine
	@PYTHONPATH=hack/cluster $(PYTHON) $(CLUSTER) down

clean: ## Remove caches; keeps the virtual environment and runs/
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	@find $(SOURCES) tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
