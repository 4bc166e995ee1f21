# GNU make. `make` alone lists the targets; `make demo` and `make test` set up all they need in
# .venv, from Python 3.11 or newer.

PYTHON ?= python3
PYTEST_ARGS ?=
# Work is stolen, not handed out by file: docs/developing/tests.md says why. More processes than processors, since
# many tests wait for a time-out, or for another process; of the slow ones fewer, whose programs need processors.
SPREAD ?= -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1))) --dist worksteal
FAST_SPREAD ?= -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2))) --dist worksteal

VENV := .venv
BIN := $(VENV)/bin
SETUP := setup.cfg pyproject.toml
EXAMPLE := datacollect/examples/upload.toml
SCENARIO := datacollect/examples/scenario_small.toml

# Nothing is looked up in, or written to, the home directory except pip's cache.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib

# Tests start hundreds of processes, which begin a third sooner where modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Users have streams that wait for whole lines.
unexport PYTHONUNBUFFERED

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help venv demo timestamp-demo quickstart-crowd demo-ns3 testbed-demo test test-terminals test-slow test-all faults attacked-events page-files simulated misbehaving explore mutants agent deb collector release lint format types docs bench study clean

help: ## list the targets
	@echo 'make TARGET [PYTHON=/path/to/python3.12]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' Makefile | awk -F@ '{printf "%-15s %s\n", $$1, $$2}'

venv: $(VENV)/.installed-dev ## set up .venv with everything a developer needs

demo: $(VENV)/.installed ## plan shipped examples, compare, draw, simulate; move real files
	@mkdir -p demo
	@echo '$$ datacollect compare $(EXAMPLE)'
	@$(BIN)/datacollect compare $(EXAMPLE) --quiet
	@echo '$$ datacollect plan $(EXAMPLE) -o demo/upload.json --force'
	@$(BIN)/datacollect plan $(EXAMPLE) -o demo/upload.json --force --quiet > demo/upload.txt
	@sed -n 1,4p demo/upload.txt
	@echo '$$ datacollect plot $(EXAMPLE) demo/upload.json -o demo/upload.png --force'
	@$(BIN)/datacollect plot $(EXAMPLE) demo/upload.json -o demo/upload.png --force --quiet
	@echo
	@echo 'In a simulated network, beside traffic of others:'
	@for method in direct best-path coordinated; do \
	    set -- simulate $(SCENARIO) --engine fluid --method $$method -o demo/$$method --force; \
	    echo "\$$ datacollect $$*"; \
	    $(BIN)/datacollect "$$@" --quiet > demo/$$method.txt || exit; \
	    grep '^makespan' demo/$$method.txt; \
	done
	@echo
	@echo 'And for real: two sources, a relay and a collector on this machine'
	@$(BIN)/python experiments/pull_demo.py demo/pull
	@echo
	@echo 'Twelve sites: from measurements to files that rclone moves on this machine'
	@$(BIN)/python experiments/sites_demo.py demo/sites
	@echo
	@echo 'All of that was planned, simulated and moved on this machine. The first plan as a picture:'
	@echo '$(CURDIR)/demo/upload.png'

timestamp-demo: $(VENV)/.installed-test ## hand in by a deadline: services, witnesses, 50 people, receipts verified offline
	@$(BIN)/python experiments/timestamp_demo.py demo/timestamp

bistro-demo: $(VENV)/.installed-test ## hand in by a deadline, to bistros; collect, prove, audit: 200 people
	@$(BIN)/python experiments/bistro_demo.py demo/bistro

quickstart-crowd: $(VENV)/.installed-test ## 500 people hand in at one host within ten minutes: how long each waits
	@$(BIN)/python experiments/quickstart_crowd.py demo/quickstart

demo-ns3: $(VENV)/.installed-ns3 ## install ns-3 and simulate the shipped scenario packet by packet
	@mkdir -p demo
	@for method in direct best-path coordinated; do \
	    set -- simulate $(SCENARIO) --engine ns3 --method $$method -o demo/ns3-$$method --force; \
	    echo; echo "\$$ datacollect $$*"; \
	    $(BIN)/datacollect "$$@" || exit; \
	done

# TESTBED='--pairs 10 --no-ns3' and the like: tests/testbed/demo.py says what there is.
TESTBED ?=

testbed-demo: $(VENV)/.installed-ns3 ## real pulls in an emulated network beside predictions (root or unshare)
	$(BIN)/python tests/testbed/demo.py $(TESTBED) -o demo

test: $(VENV)/.installed-test ## run the tests, doctests and the documents' examples
	$(BIN)/python -m pytest $(FAST_SPREAD) $(PYTEST_ARGS)

# Users have other locales, and terminals that can do nothing but write lines.
test-terminals: $(VENV)/.installed-test ## run the command line's tests once more, with LANG=C and TERM=dumb
	env -u LC_ALL -u LC_CTYPE LANG=C TERM=dumb \
	    $(BIN)/python -m pytest $(FAST_SPREAD) $(PYTEST_ARGS) tests/commands \
	    tests/bistro/commands tests/measuring/commands

test-slow: $(VENV)/.installed-test ## run the slow tests only, few of their random cases
	$(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS) -m slow

test-all: $(VENV)/.installed-test ## run all tests, slow ones with all their random cases
	DATACOLLECT_TEST_PROFILE=unhurried $(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS) -m ''

# MUTANTS=60 takes so many of them at random, in some ten minutes; MUTANTS=all half a day or more.
MUTANTS ?= 60

# Where what was tried is kept, so that it goes on: hours. FAULTS='--minutes 10 --only fsync' and the
# like: tests/faults/run.py says what there is.
FAULTS ?=
FAULTS_FOLDER ?= faults

faults: $(VENV)/.installed-test ## fail the n-th call of pulls, handing in, collecting events, measuring, tunnels, spools; hours, goes on
	$(BIN)/python tests/faults/run.py --folder $(FAULTS_FOLDER) $(FAULTS) --table docs/faults_table.md
	$(BIN)/python tests/faults/log_run.py
	$(BIN)/python tests/faults/client_run.py
	$(BIN)/python tests/faults/bistro_run.py
	$(BIN)/python tests/faults/destination_run.py
	$(BIN)/python tests/faults/measure_run.py
	$(BIN)/python tests/faults/tunnel_run.py
	$(BIN)/python tests/faults/spool_run.py

attacked-events: $(VENV)/.installed-test ## 10 000 simulated events with cheats beside honest people; goes on, an hour
	PYTHONPATH=tests $(BIN)/python tests/bistro/simulation/test_attacked_event.py build/attacked-events.json

page-files: $(VENV)/.installed-test ## 10 000 files in one hand-in on the page, in Chromium and Firefox; minutes
	$(BIN)/python -m pytest -q -s -m '' tests/bistro/page/many_files.py

# How many of each: make simulated SCHEDULES=100.
SCHEDULES ?= 10000

simulated: $(VENV)/.installed-test ## 10 000 simulated schedules each of pulls, agents with tunnels, spools, feeds, Bistro's parties; hours
	for of in pulls web agents spools; do \
	    $(BIN)/python tests/simulated/many.py --of $$of --count $(SCHEDULES) || exit; \
	done
	$(BIN)/python tests/feeds/many_worlds.py $(SCHEDULES)
	for of in simulation collection event; do \
	    PYTHONPATH=tests $(BIN)/python tests/bistro/simulation/test_$$of.py 0 $(SCHEDULES) || exit; \
	done

# Where its results are kept, and what else: tests/misbehaving/run.py says what there is.
MISBEHAVING ?=
MISBEHAVING_FOLDER ?= misbehaving

misbehaving: $(VENV)/.installed-test ## pulls and scripts from servers that misbehave in all ways; hours, goes on
	$(BIN)/python tests/misbehaving/run.py --folder $(MISBEHAVING_FOLDER) $(MISBEHAVING) \
	    --table docs/misbehaving_table.md

# Where its results are kept, and what else: tests/explore/run.py says what there is.
EXPLORE ?=
EXPLORE_FOLDER ?= explore

explore: $(VENV)/.installed-test ## random cases of all families, other ones each time; hours, goes on
	nice $(BIN)/python tests/explore/run.py --folder $(EXPLORE_FOLDER) $(EXPLORE) \
	    --table docs/exploring_table.md

mutants: $(VENV)/.installed-mutants ## change the judge, fair shares, controllers: do tests notice (MUTANTS)?
	$(BIN)/python tests/mutants.py $(if $(filter all,$(MUTANTS)),,--sample $(MUTANTS))

# Options of pex (https://docs.pex-tool.org), as for another Python or platform:
# PEX='--python python3.12', PEX='--complete-platform FILE'.
PEX ?=

agent: $(VENV)/.installed-agent ## an agent in one file that runs where Python is, and its wheel, in dist
	$(BIN)/python packaging/build.py dist --pyz $(PEX)
	@echo 'The agent is in $(CURDIR)/dist/datacollect-agent.pyz'

deb: $(VENV)/.installed ## the agent as a Debian package, with its service, in dist
	$(BIN)/python packaging/build.py dist --deb
	@echo 'The package is in' dist/datacollect-agent_*.deb

collector: $(VENV)/.installed ## the collector alone, which needs a sixth of the room: a wheel, in dist
	$(BIN)/python packaging/build.py dist --collector
	@echo 'The collector is in' dist/datacollect_collector-*.whl

# Where it is tried: PYTHONS='python3.11 python3.12 python3.13 python3.14'. RELEASE=--ns3: in ns-3, too.
PYTHONS ?= $(BIN)/python
RELEASE ?=

release: $(VENV)/.installed-release ## all that is released, with hashes, in dist; tried with each of PYTHONS
	$(BIN)/python packaging/release.py dist --python $(PYTHONS) $(RELEASE)

lint: $(VENV)/.installed-lint ## ruff: rules and format; import-linter: who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache

format: $(VENV)/.installed-lint ## let ruff mend and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-lint ## strict mypy
	$(BIN)/mypy

# DOCS='-t unread': without pages of source, in half the time.
DOCS ?=

docs: $(VENV)/.installed-docs ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -n -j auto $(DOCS) -b html docs docs/_build/html
	@echo 'The documentation is in $(CURDIR)/docs/_build/html/index.html'

bench: $(VENV)/.installed-test ## measure planning speed and how it grows
	$(BIN)/python experiments/planning_speed.py
	$(BIN)/python experiments/growth.py
	$(BIN)/python experiments/periods_speed.py
	$(BIN)/python experiments/explaining_speed.py
	$(BIN)/python experiments/certainty_speed.py
	$(BIN)/python experiments/transfer_speed.py --only pieces listed
	$(BIN)/python experiments/list_speed.py
	$(BIN)/python experiments/joining_speed.py

# Which sweeps (STUDY, all of them), at which part of the paper's size, with how many seeds (SEEDS=: as
# many as the files say), and the folder of measured data (DATA): experiments/study.py says more.
STUDY ?=
SCALE ?= 0.1
SEEDS ?= 3

study: $(VENV)/.installed-study ## repeat the paper's study in ns-3 (STUDY, SCALE, SEEDS, DATA); hours
	$(BIN)/python experiments/study.py $(STUDY) --scale $(SCALE) \
	    $(if $(SEEDS),--seeds $(SEEDS)) $(if $(DATA),--data $(DATA))

clean: ## remove what was built; .venv stays
	rm -rf build dist *.egg-info demo docs/_build docs/api/generated .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# Set-up -----------------------------------------------------------------------------------------
# One environment; each stamp says that one set of packages is in it. A changed setup.cfg or
# pyproject.toml installs again, which takes seconds where nothing is missing.

# Says which package it is at. The stamp tells whether pip has ended well: what comes after | does not.
define install
@rm -f $@
@{ $(BIN)/python -m pip install --progress-bar off --editable $(1) && touch $@; } | \
    grep --line-buffered -E '^ *(Collecting|Building|Installing collected)'; test -e $@
endef

$(VENV)/.installed: $(SETUP) | $(BIN)/pip
	@echo 'Installing datacollect into $(VENV) (the first time about a minute)'
	$(call install,.)

$(VENV)/.installed-test: EXTRAS := test,fast
$(VENV)/.installed-agent: EXTRAS := agent
$(VENV)/.installed-release: EXTRAS := release
$(VENV)/.installed-mutants: EXTRAS := mutants
$(VENV)/.installed-lint: EXTRAS := lint
$(VENV)/.installed-docs: EXTRAS := docs,fast
$(VENV)/.installed-dev: EXTRAS := dev
$(VENV)/.installed-dev: HAS := test lint docs
$(VENV)/.installed-ns3: EXTRAS := ns3
$(VENV)/.installed-study: EXTRAS := ns3,report,fast

$(VENV)/.installed-%: $(SETUP) | $(BIN)/pip
	@echo 'Installing datacollect[$(EXTRAS)] into $(VENV) (the first time about a minute)'
	$(call install,'.[$(EXTRAS)]')
	$(if $(HAS),@touch $(HAS:%=$(VENV)/.installed-%))

# The last file that venv writes, so that an interrupted set-up starts again.
$(BIN)/pip:
	@found=; \
	for python in $(PYTHON) $(if $(filter file,$(origin PYTHON)),python3.13 python3.12 python3.11 python3.14); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        found=$$python; break; \
	    fi; \
	done; \
	if [ -z "$$found" ]; then \
	    version=$$($(PYTHON) -c 'import sys; print("Python %d.%d" % sys.version_info[:2])' \
	        2>/dev/null || echo 'not there'); \
	    echo "datacollect needs Python 3.11 or newer; '$(PYTHON)' is $$version." >&2; \
	    echo 'Install one (https://www.python.org/downloads/; Debian, Ubuntu: apt install python3;' \
	        'macOS: brew install python) or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; \
	    exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
	    version=$$($$found -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "'$$found' cannot make virtual environments: its module venv or ensurepip is missing." >&2; \
	    echo "Debian, Ubuntu: apt install python$$version-venv. Or name another Python:" \
	        'make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; \
	    exit 1; \
	fi; \
	echo "Making a virtual environment in $(VENV) with $$($$found --version)"; \
	$$found -m venv $(VENV)
