# make demo and make test do everything on a fresh machine that has Python >= 3.9 and make. The rest is for developers.
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/build/deps/usr/bin:$(PATH)
PYTHON ?= python3
export PYTHON
JOBS ?= $(shell nproc)

help:
	@echo "make demo       train on handwritten digits with 1 and 2 processes"
	@echo "make test       everything that must hold (about 15 minutes on 2 cores)"
	@echo "make test-long  the full sanitizer runs, 10 000 simulated seeds, the fuzzers, the release wheel"
	@echo "make bench      latency and bandwidth beside the peers on this machine"
	@echo "make wheel      the wheel that others can install, into dist/"
	@echo "make build      the developer's wheel, installed into .venv"
	@echo "make lint, make format, make clean"

setup:
	@tools/setup build

# The developer's wheel, with this machine's compiler.
build: setup
	@$(PYTHON) tools/make_wheel.py developer --install

demo:
	@tools/setup demo
	@$(PYTHON) tools/make_wheel.py developer --install
	@.venv/bin/python examples/demo.py

test:
	@tools/setup test
	@$(PYTHON) tools/run_tests.py

test-long:
	@tools/setup test wheel
	@$(PYTHON) tools/run_tests.py --long

bench:
	@tools/setup bench
	@cmake --preset bench > build/logs/bench.log && cmake --build --preset bench -j $(JOBS) >> build/logs/bench.log
	@$(PYTHON) bench/raw.py build/bench --ranks 2 --json build/bench/raw.json

wheel:
	@tools/setup wheel
	@$(PYTHON) tools/make_wheel.py release

lint:
	@tools/setup test
	@$(PYTHON) tools/lint.py

format:
	@tools/setup test
	@$(PYTHON) tools/lint.py --fix

# Keeps what tools/setup brought.
clean:
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +
	@rm -rf dist

.PHONY: help setup build demo test test-long bench wheel lint format clean
