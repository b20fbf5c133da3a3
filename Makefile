# Each target works as the first command in a fresh clone: it brings uv, Python packages and services itself,
# all inside the checkout, in folders that git ignores.

UV_VERSION = 0.13.9
PYTHON = .venv/bin/python
WITH_SERVICES = $(PYTHON) -m memberintel.embedded exec
AUDIT = .tools/bin/uv tool run --quiet --from pip-audit==2.10.1 pip-audit --requirement /dev/stdin --no-deps --disable-pip
PACKAGES = manage.py memberintel brain sessions wrapups evals tests

export UV_CACHE_DIR ?= $(CURDIR)/.tools/cache
export UV_PYTHON_INSTALL_DIR ?= $(CURDIR)/.tools/python
# The system's certificates, where it has any: they know the proxies of this network.
export UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
	/etc/ssl/cert.pem),true,false)
export PIP_ROOT_USER_ACTION ?= ignore
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH

.PHONY: help run test lint format openapi smoke evals bench load audit roles ready

help:
	@echo "make run     serve the product with demo data on http://127.0.0.1:8000 (PORT=8001 for another port)"
	@echo "make test    run the tests (ARGS='tests/vault -k seal' for some)"
	@echo "make lint    check style, types, import contracts, templates, migrations, and packages for known faults"
	@echo "make format  put the code into the style that lint asks for"
	@echo "make openapi write docs/openapi.yaml from the code"
	@echo "make smoke   play the main job end to end on private services"
	@echo "make evals   play the continuity cases (PROVIDER=anthropic for a real model)"
	@echo "make bench   measure it (ARGS='sweep rls' for some)"
	@echo "make audit   ask the registry for known faults of the packages used, where it knows any"
	@echo "make load    close 10,000 sessions of every sort, and compare what becomes of each with the rules"
	@echo "make roles   print the SQL that makes the roles on a PostgreSQL of your own"

run: ready
	@exec $(PYTHON) -m memberintel.embedded run

test: ready
	@$(PYTHON) -m pytest -n 2 $(ARGS)

# Reading the settings takes a key, checking migrations takes no database: Django warns that it found none.
lint: export SECRET_KEY ?= lint
lint: export PYTHONWARNINGS = ignore::RuntimeWarning
lint: ready audit
	.venv/bin/ruff check $(PACKAGES)
	.venv/bin/ruff format --check $(PACKAGES)
	.venv/bin/mypy $(PACKAGES)
	.venv/bin/djlint --quiet --check --lint templates
	.venv/bin/lint-imports
	$(PYTHON) manage.py makemigrations --check --dry-run

format: ready
	.venv/bin/ruff check --fix $(PACKAGES)
	.venv/bin/ruff format $(PACKAGES)
	.venv/bin/djlint --quiet --reformat templates

openapi: export SECRET_KEY ?= openapi
openapi: ready
	@$(PYTHON) manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml

smoke: ready
	@$(WITH_SERVICES) --private -- $(PYTHON) -m evals.smoke

evals: ready
	@$(WITH_SERVICES) --private -- $(PYTHON) -m evals.continuity

bench: ready
	@$(WITH_SERVICES) --private -- $(PYTHON) -m evals.performance $(ARGS)

load: ready
	@$(WITH_SERVICES) --private -- $(PYTHON) -m evals.load

# An old Jinja tells whether the registry has data on faults at all; one without (a mirror) would pass everything.
audit: ready
	@if echo jinja2==2.4.1 | $(AUDIT) --format json 2>/dev/null | grep -qE '(PYSEC|GHSA|CVE)-'; \
	then .tools/bin/uv export --frozen --no-emit-project --no-hashes --quiet | $(AUDIT) --strict; \
	else echo "The packages were not checked for known faults: the registry in use has no data on them."; fi

roles: ready
	@$(PYTHON) -m memberintel.tenancy.roles

ready: .tools/bin/uv
	@$< sync --frozen --quiet || { \
	  if $< python find --quiet 3.13 >/dev/null 2>&1; \
	  then echo "The packages could not be installed (see above). The first run needs a network."; \
	  else echo "There is no Python 3.13 that this user can run, and none could be downloaded." \
	            "Install one so that 'python3.13' is on PATH, then try again."; \
	  fi >&2; exit 1; }

# pip --target works also where Python is externally managed and where venv is not installed.
.tools/bin/uv:
	@for python in python3 python3.13 /usr/bin/python3; do \
	  if $$python -m pip --version >/dev/null 2>&1; then \
	    $$python -m pip install --quiet --no-cache-dir --disable-pip-version-check \
	      --target .tools uv==$(UV_VERSION) && exit 0; \
	    echo "pip could not install uv (see above). The first run needs a network." >&2; exit 1; \
	  fi; \
	done; \
	echo "No python3 with pip was found: install Python 3.13 with pip (on Debian: python3-pip)." >&2; exit 1
