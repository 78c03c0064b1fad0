# The five things a developer does: build, test, lint, bench, docs.

.PHONY: build test lint bench docs

build: ## Install in place, with all tools; again after a change of a .pyx file
	pip install -e '.[dev,bench]'

test: ## The tests that run at each change; `pytest -m nightly` runs the long ones
	pytest -q -n auto --dist loadfile

lint: ## All static checks, as CI runs them
	.ci/lint

bench: ## Quality against Vowpal Wabbit, and speed against its peers
	python -m benchmarks.default
	python -m benchmarks.speed

docs: ## Show the documentation site, rebuilt as files change
	zensical serve
