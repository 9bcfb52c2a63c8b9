# Every target first makes the checkout ready; see tools/bootstrap.sh. ARGS is passed on: make test ARGS='-k commit'
PYTHON_ENV := .venv/bin/python
unexport PYTHONDONTWRITEBYTECODE # or each of the many processes that tests start compiles the four packages again

.PHONY: help demo check gate test nightly typing matrix lint docs bench chaos model clean
.DEFAULT_GOAL := help

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo:  ## count the words of real text on the embedded server; kill it and start it again
	@tools/bootstrap.sh java
	@$(PYTHON_ENV) tools/demo.py $(ARGS)

check:  ## in a minute, while you write: lint, types, architecture, and the tests of everything pure
	@tools/bootstrap.sh
	$(PYTHON_ENV) -m ruff check
	$(PYTHON_ENV) -m ruff format --check
	$(PYTHON_ENV) -m mypy
	TXBATCH_RANDOM_RUNS=300 $(PYTHON_ENV) -m pytest -q -n 2 --hypothesis-profile=check \
		-m "not spark and not redis and not kafka and not slow and not nightly and not chaos" \
		tests/test_architecture.py tests/state tests/coordinated_bolt tests/committers tests/golden \
		tests/coordinator/transactional/machine $(ARGS)

gate:  ## the tests that a change reaches, the nearest first, for five minutes: make gate ARGS='--since HEAD~3'
	@tools/bootstrap.sh java redis-server
	$(PYTHON_ENV) -m tests.reach $(ARGS)

test:  ## what every change must pass, in about 18 minutes on two cores: make test ARGS='-k commit'
	@tools/bootstrap.sh java redis-server maven prometheus go spin
	TXBATCH_SIMULATION_SEEDS=25 TXBATCH_RANDOM_RUNS=300 TXBATCH_FORGETFUL_STEPS=250 TXBATCH_ROTATION_SEEDS=8 \
		$(PYTHON_ENV) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --hypothesis-profile=change \
		-m "not nightly and not browser" $(ARGS)

nightly:  ## all tests and all evidence at length, in two hours: before an issue is closed, and every night
	@tools/bootstrap.sh java redis-server maven prometheus go spin lowest-versions
	TXBATCH_SIMULATION_SEEDS=1000 TXBATCH_RANDOM_RUNS=10000 TXBATCH_CSV_TEXTS=50000 TXBATCH_ROTATION_SEEDS=200 \
		TXBATCH_ROTATION_FIRST=$$(( $$(date +%-j) * 200 )) \
		TXBATCH_RESHARD_ROUNDS=20 TXBATCH_RANDOM_PROGRAMS=2000 $(PYTHON_ENV) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)
	$(MAKE) typing
	$(PYTHON_ENV) -m tools.model
	$(PYTHON_ENV) -m tests.support.chaos.nemesis --minutes 10

typing:  ## what pyright makes of typed programs, which mypy reads in lint
	@tools/bootstrap.sh pyright
	PYTHONPATH=.programs/pyright $(PYTHON_ENV) -m basedpyright --pythonpath $(PYTHON_ENV)

matrix:  ## run the short tests on every PySpark and Python that is supported
	@tools/bootstrap.sh java redis-server
	$(PYTHON_ENV) -m tools.spark_matrix $(ARGS)

lint:  ## ruff and mypy
	@tools/bootstrap.sh
	$(PYTHON_ENV) -m ruff check
	$(PYTHON_ENV) -m ruff format --check
	$(PYTHON_ENV) -m mypy

docs:  ## build the documentation into site/; make docs ARGS=serve shows it on this machine while you write
	@tools/bootstrap.sh
	@$(PYTHON_ENV) -c 'import mkdocs' 2>/dev/null || { echo "make docs needs the docs extra; run: .venv/bin/pip install -e '.[docs]'" >&2; exit 2; }
	NO_MKDOCS_2_WARNING=1 $(PYTHON_ENV) -m mkdocs $(or $(ARGS),build)

bench:  ## rates and latencies next to other ways to the same answer: make bench ARGS=--quick
	@tools/bootstrap.sh java
	$(PYTHON_ENV) -m benchmarks.suite $(ARGS)

chaos:  ## strike at real drivers, servers and Spark for ten minutes: make chaos ARGS='--minutes 60 --seed 7'
	@tools/bootstrap.sh java redis-server go
	$(PYTHON_ENV) -m tests.support.chaos.nemesis $(ARGS)

model:  ## search the protocol's model for errors with SPIN, and for planted ones: make model ARGS='--only drop'
	@tools/bootstrap.sh spin
	$(PYTHON_ENV) -m tools.model $(ARGS)

clean:  ## remove caches, build products and the demo's data; keep .venv
	rm -rf .txbatch .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site spark-warehouse metastore_db derby.log *.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
