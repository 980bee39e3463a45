# Two commands: `make demo` and `make test`. Each sets up .venv itself and uses it again the second time.
export MAKECMDGOALS

.PHONY: help demo test clean

help:
	@echo "make demo   convert a Graph-mode file, check it, train it (installs into .venv the first time)"
	@echo "make test   ruff, mypy and all tests"
	@echo "make clean  remove .venv and output"

demo:
	@sh scripts/venv.sh train
	@sh scripts/demo.sh

test:
	@sh scripts/venv.sh train dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python -m pytest

clean:
	rm -rf .venv output
