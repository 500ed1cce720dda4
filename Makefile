# Every target makes its own .venv first; PYTHON chooses the interpreter it is made from.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench format clean

demo: .venv/ready
	$(BIN)/laconic demo

test: lint
	$(BIN)/pytest

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/laconic bench tsetlin

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
