# The front door. `make help` lists what there is; CMakePresets.json has the details.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help deps build test dev demo dashboard dashboard-test reference does-it-help dist arm64 release reproduce bench check check-long cluster-up cluster-down campaign soak sessions clients records-postgresql alerts-test e2e-kubernetes mpi-kubernetes e2e-image-volume e2e-versions upgrade-test e2e-target bench-kubernetes format clean

JOBS ?= $(shell nproc)
WAITING_JOBS ?= $(shell expr $(JOBS) + 1)
SLICE ?= 2s
DURATION ?= 60s
PART ?= scheduler
BUILD := build
TEST_ARGS ?=
SECOND_TRIES_MAX := 2
NODES ?= 1000
ROUNDS ?= 10000
SEED ?=
FINDINGS_ALLOWED ?= 0
SCALE ?= 1
DIST_URL ?= https://example.com/kubegang
SOURCE_URL ?=
SIGN ?=
ARM64 ?= yes

help:  ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

deps:  ## install the Debian packages that are missing (root or sudo)
	@tools/install-packages tools/packages.txt

build: deps  ## build the programs into build/bin
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target programs

test: deps  ## build and run all tests
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure --label-exclude e2e -j $(JOBS) $(TEST_ARGS)
	@tools/tell-skipped $(BUILD)
	@# These start clusters of real processes, wait most of the time, and watch the clock; a machine that
	@# stands still for a moment (a busy host) may fail one. It is shown, and tried once more; more
	@# than SECOND_TRIES_MAX of these are a failure.
	@failed=; ctest --test-dir $(BUILD) --output-on-failure --label-regex e2e --repeat until-pass:2 -j $(WAITING_JOBS) $(TEST_ARGS) || failed=1; \
	  tools/tell-skipped $(BUILD); tools/second-tries $(BUILD) $(SECOND_TRIES_MAX) && [[ -z $$failed ]]

dev: deps  ## edit, build, test: the quick tests of one part, file by file (PART=operator)
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev -j $(JOBS) --target $(PART)_unit_tests
	@ctest --test-dir $(BUILD)/dev --output-on-failure --label-regex '^part_$(PART)$$' --label-exclude '^(e2e|root|slow)$$' -j $(JOBS) $(TEST_ARGS)

demo: build  ## two gangs take turns on five nodes (SLICE=2s DURATION=60s)
	@tools/as-root $(BUILD)/bin/kubegang-devcluster demo --slice $(SLICE) --duration $(DURATION) --dir $(BUILD)/demo

dashboard:  ## bundle the page after a change in dashboard/web (Debian's nodejs and npm)
	@command -v npm >/dev/null || tools/install-packages tools/packages-dashboard.txt
	@dashboard/web/bundle dashboard/bundle

dashboard-test: build  ## is the bundle that of the source; the page in Chromium against the devcluster (root or sudo; SHOTS=folder)
	@command -v npm >/dev/null && command -v chromium >/dev/null || tools/install-packages tools/packages-dashboard.txt
	@dashboard/web/bundle $(BUILD)/dashboard-bundle && diff -r $(BUILD)/dashboard-bundle dashboard/bundle
	@tools/as-root dashboard/web/test/run $(BUILD) $(SHOTS)

bench: build  ## measure: files in build/bench
	@cmake --build --preset release -j $(JOBS) --target benchmarks
	@tools/bench $(BUILD)

reference: deps  ## write docs/reference/ again, from the CRDs and the programs
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target reference_test
	@KUBEGANG_WRITE_REFERENCE=1 $(BUILD)/tests/reference_test >/dev/null && git --no-pager diff --stat docs/reference

does-it-help: deps  ## write the tables and pictures of docs/does-it-help.md: four schedulers, two workload models (minutes)
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target kubegang-study
	@$(BUILD)/bin/kubegang-study docs && git --no-pager diff --stat docs

dist: build  ## the plugin as an archive, with krew's manifest, in build/dist (DIST_URL=where they will lie)
	@tools/dist $(BUILD) $(BUILD)/dist $(DIST_URL)

arm64: deps
	@tools/install-packages tools/packages-arm64.txt
	@tools/sysroot $(BUILD)/sysroot-arm64 arm64
	@cmake --preset arm64 >/dev/null
	@cmake --build --preset arm64 -j $(JOBS) --target released

release: build $(if $(filter no,$(ARM64)),,arm64)  ## chart, images, plugin, SBOM and sums of a committed tree, in build/release, checked (ARM64=no DIST_URL=… SOURCE_URL=… SIGN=key of gpg)
	@rm -rf $(BUILD)/release
	@tools/release $(BUILD) $(BUILD)/release --url $(DIST_URL) $(if $(SOURCE_URL),--source $(SOURCE_URL)) $(if $(SIGN),--sign '$(SIGN)') $(if $(filter no,$(ARM64)),,--arm64 $(BUILD)/arm64 $(BUILD)/sysroot-arm64)

reproduce: build $(if $(filter no,$(ARM64)),,arm64)  ## does another compilation, in another folder, give the same programs? ten minutes on two cores and the time of make arm64 (ARM64=no for amd64 alone)
	@tools/reproduce $(BUILD) $(BUILD)/reproduce
	@$(if $(filter no,$(ARM64)),,tools/reproduce $(BUILD)/arm64 $(BUILD)/reproduce $(BUILD)/sysroot-arm64)

check: deps  ## the tests of the pure parts under asan-ubsan, and fuzzing (FUZZ_SECONDS=15 each)
	@tools/install-packages tools/packages-check.txt
	@tools/check

check-long: deps  ## everything under asan-ubsan and tsan, fuzzing, more rounds: hours
	@tools/install-packages tools/packages-check.txt
	@tools/check --long

campaign: deps  ## the whole system in virtual time, with faults (ROUNDS=10000 SEED=N, else other rounds each time)
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target kubegang-simulation
	@$(BUILD)/bin/kubegang-simulation --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) --threads $(JOBS) --findings 100 --allow $(FINDINGS_ALLOWED) --findings-to $(BUILD)/findings

sessions: build  ## play the sessions that were recorded with Slurm, and compare (NAMES="batch_env srun_steps"; root or sudo)
	@tools/as-root env KUBEGANG_BUILD=$(abspath $(BUILD)) e2e/sessions/compare $(NAMES)

# Their releases of the day: what people would install.
CLIENTS := submitit snakemake snakemake-executor-plugin-slurm dask-jobqueue
clients: build  ## submitit, Snakemake and dask-jobqueue from PyPI, unmodified, on the devcluster (root or sudo; python3-venv)
	@tools/install-packages tools/packages-clients.txt
	@test -x $(BUILD)/clients/bin/snakemake || { python3 -m venv $(BUILD)/clients && $(BUILD)/clients/bin/pip install -q $(CLIENTS); }
	@tools/as-root env PATH="$(abspath $(BUILD))/clients/bin:$$PATH" KUBEGANG_BUILD=$(abspath $(BUILD)) \
	  e2e/sessions/compare c_submitit c_snakemake c_dask

records-postgresql: deps  ## the copy of records in PostgreSQL, with a server that is killed again and again
	@tools/install-packages tools/packages-postgresql.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target records_postgresql_test
	@ctest --test-dir $(BUILD) --output-on-failure -R '^records_postgresql_test$$'
	@tools/tell-skipped $(BUILD)

alerts-test: deps  ## the chart's alerts by promtool (Debian's prometheus; helm)
	@command -v promtool >/dev/null || tools/install-packages tools/packages-alerts.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target chart_test
	@ctest --test-dir $(BUILD) --output-on-failure -R '^chart_test$$'
	@tools/tell-skipped $(BUILD)

soak: deps  ## real processes, freezes and kills on the devcluster for an hour (root; SOAK_MINUTES=60 SOAK_SEED=1)
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target soak
	@tools/as-root $(BUILD)/tests/soak

e2e-kubernetes: deps  ## the tests on a real Kubernetes (root; Go; minutes the first time; FILTER=Suite.*)
	@tools/install-packages tools/packages-kubernetes.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target programs kubernetes_tests api_server_contract_test
	@tools/as-root e2e/kubernetes/run-tests $(BUILD) $(if $(FILTER),'$(FILTER)')

mpi-kubernetes: deps  ## Debian's MPICH and Open MPI in two gangs that take turns of 100 ms, on a real Kubernetes (root; Go)
	@$(MAKE) --no-print-directory e2e-kubernetes FILTER='MpiScripts.*'

e2e-image-volume: deps  ## batch scripts whose launcher comes as an image volume: Kubernetes 1.37, containerd 2.2 (root; Go)
	@KUBEGANG_KUBERNETES=1.37 KUBEGANG_CONTAINERD=2 $(MAKE) --no-print-directory e2e-kubernetes \
	  FILTER='ImageVolumes.*:BatchScripts.*:ScriptNames.*:ScriptExamples.*:PodDefaults.*:RemoteSteps.*'

e2e-versions: deps  ## 40 of the tests on Kubernetes 1.32 and 1.37 (root; Go; a quarter of an hour to build each; VERSIONS=1.37)
	@tools/install-packages tools/packages-kubernetes.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target programs kubernetes_tests
	@tools/as-root e2e/kubernetes/run-versions $(BUILD) $(VERSIONS)

upgrade-test: deps  ## this version beside an older one, helm upgrade and rollback (root; FROM=COMMIT)
	@test -n "$(FROM)" || { echo "say which older version: make upgrade-test FROM=COMMIT" >&2; exit 1; }
	@tools/install-packages tools/packages-kubernetes.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target programs upgrade_scenarios kubernetes_tests
	@tools/as-root tools/upgrade-test $(BUILD) $(FROM)

e2e-target: deps  ## the tests on two nodes as they are in the field, as guests of QEMU (root; Go; SUITES='gangs kills')
	@tools/install-packages tools/packages-target.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target programs kubegang-turns
	@tools/as-root e2e/target/run-tests $(BUILD) $(SUITES)

bench-kubernetes: deps  ## gangs, plain pods, batch Jobs on 1,000 KWOK nodes; many jobs (root; Go; NODES=50 SCALE=20 ONLY=shapes|pair|adopted|claims|jobs|watch)
	@tools/install-packages tools/packages-kubernetes.txt
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target kubegang-operator kubectl-gang kubernetes_bench
	@tools/as-root e2e/kubernetes/run-bench $(BUILD) --nodes $(NODES) --scale $(SCALE) $(if $(ONLY),--only $(ONLY)) $(SHAPES:%=--shape %)

cluster-up: build  ## a real Kubernetes of three nodes on this machine, kubegang installed (root; Go)
	@tools/install-packages tools/packages-kubernetes.txt
	@tools/as-root e2e/kubernetes/make-images $(BUILD)
	@tools/as-root e2e/kubernetes/cluster-up
	@tools/as-root e2e/kubernetes/install-chart

cluster-down:  ## end it, leave nothing
	@tools/as-root e2e/kubernetes/cluster-down

format:  ## clang-format the whole tree
	@command -v clang-format >/dev/null || { echo "clang-format is not installed: apt-get install clang-format" >&2; exit 1; }
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:  ## remove build/
	@rm -rf $(BUILD) 2>/dev/null || tools/as-root rm -rf $(BUILD)  # what the demo left is root's
