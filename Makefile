# Everything happens in .venv; requirements/*.txt pin every dependency by hash.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: environment demo test check format lock clean

environment: ## both programs in .venv, to run them by hand
	@deploy/environment demo $(VENV)

demo: ## the whole path on a sample mailbox; ARGS=--unattended signs by itself and checks the outcome
	@deploy/environment demo $(VENV)
	@exec $(BIN)/python -m deploy.demo $(ARGS)

test: ## what the tests need, then the tests; ARGS goes to pytest
	@deploy/environment dev $(VENV)
	@deploy/test_packages
	@$(BIN)/python -m pytest -n 4 --dist loadfile $(ARGS)

check: ## format, lint, types, import contracts
	@deploy/environment dev $(VENV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format:
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## pin anew; the files name no index and no host
	@deploy/environment dev $(VENV)
	for extra in reader executor demo dev; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-annotate --no-header --extra $$extra pyproject.toml -o requirements/$$extra.txt; \
	done

clean:
	rm -rf $(VENV) build dist *.egg-info
