# Every target makes its own .venv first; PYTHON chooses the interpreter it is made from.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-deployment lint browser broker bench tables docs format clean

demo: .venv/ready
	$(BIN)/laconic demo

# Tests of real nodes mostly wait, so they run beside all others, and after them a part of these; what they print comes
# last. They have a Numba cache of their own, for two processes that compile the same function at once may mix up what
# they keep.
BESIDE = NUMBA_CACHE_DIR="$(CURDIR)/.venv/numba" $(BIN)/pytest -p no:cacheprovider
DEPLOYMENT_TESTS = $(BESIDE) -m deployment tests/deploy
PART = tests/algorithms tests/banks tests/bench tests/data tests/explain tests/export tests/golden tests/live tests/models \
  tests/networks tests/records tests/report tests/reproduce tests/tsetlin $(addprefix tests/test_,api.py federated.py guides.py notebooks.py opening.py own_table.py release.py site.py)

test: lint browser broker
	@($(DEPLOYMENT_TESTS); deployed=$$?; $(BESIDE) $(PART); exit $$((deployed | $$?))) \
	  >.venv/beside.log 2>&1 </dev/null & beside=$$!; \
	$(BIN)/pytest $(addprefix --ignore=,$(PART)); others=$$?; \
	wait $$beside; aside=$$?; \
	echo "tests of real nodes, then the other part:"; cat .venv/beside.log; \
	exit $$((others | aside))

# Real servers and nodes over TLS, killed and started again.
test-deployment: .venv/dev broker
	$(DEPLOYMENT_TESTS)

# The report's tests open it in a real browser: any Chromium on the path, or one that LACONIC_CHROMIUM names.
browser:
	@for name in "$$LACONIC_CHROMIUM" chromium chromium-browser google-chrome chrome; do \
	  command -v "$$name" >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium >/dev/null && exit 0; \
	fi; \
	echo "no Chromium found: the tests of the report's page will be skipped" >&2

# Real nodes talk through a real broker: mosquitto 2, from the system's packages; its own service is not needed.
broker:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	command -v mosquitto >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y mosquitto >/dev/null && exit 0; \
	fi; \
	echo "no mosquitto found: the tests of real nodes over MQTT will be skipped" >&2

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/laconic bench tsetlin

# What pages have from figures and code: tables of the README, docs/methods and docs/results, the README's sentence and
# picture. Schemas of messages need PyTorch to be imported.
tables: .venv/dev
	$(BIN)/python benchmarks/pages.py

# The site, into site/; it opens from there and loads nothing from elsewhere. A broken link ends it.
docs: tables
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP_INSTALL) -e .
	touch $@

# Whatever a test needs: networks, Ray, MQTT, Flower, ONNX and the tools.
.venv/dev: .venv/ready
	$(PIP_INSTALL) -e '.[dev,nn,ray,mqtt,flower,export]'
	touch $@

clean:
	rm -rf site .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
