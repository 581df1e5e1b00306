# The one door: `make`, `make demo`, `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

PYTHON ?= python3
JOBS ?= $(shell nproc)
ROOT := $(CURDIR)
PY := $(ROOT)/.venv/bin/python
BUILD := build/release

# The third-party libraries are built once, for all configurations; a prefix made elsewhere may be given instead.
OWN_PREFIX := $(ROOT)/build/deps/prefix
export EPONA_DEPS_PREFIX ?= $(OWN_PREFIX)
CCACHE := $(shell command -v ccache)
ifneq ($(CCACHE),)
export CMAKE_C_COMPILER_LAUNCHER ?= $(CCACHE)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(CCACHE)
export CCACHE_BASEDIR ?= $(ROOT)
export CCACHE_NOHASHDIR ?= 1
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
endif

.PHONY: all setup deps configure build product install demo test test-browser test-openvino check bench asan tsan fuzz werror lint analyze format clean help

all: install  ## build everything and install the package into .venv

setup: .venv/.ready  ## install system packages and the Python environment

build/.system: scripts/setup.sh
	@mkdir -p build
	@scripts/setup.sh build
	@touch $@

.venv/.ready: requirements-dev.txt | build/.system
	@[ -x $(PY) ] || $(PYTHON) -m venv .venv
	@echo "installing the Python tools of requirements-dev.txt into .venv"
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

deps: $(EPONA_DEPS_PREFIX)/.ready  ## build onnx, protobuf and Highway from their pinned sources

$(OWN_PREFIX)/.ready: $(wildcard cmake/deps/*) scripts/third_party.py | .venv/.ready
	@$(PY) scripts/third_party.py
	@cmake -S cmake/deps -B build/deps -G Ninja -DCMAKE_BUILD_TYPE=Release >build/deps.log 2>&1 || { cat build/deps.log; exit 1; }
	@echo "building the third-party libraries"
	@cmake --build build/deps -j $(JOBS)
	@cmake --install build/deps --prefix $(OWN_PREFIX) >/dev/null
	@touch $@

ifneq ($(EPONA_DEPS_PREFIX),$(OWN_PREFIX))
$(EPONA_DEPS_PREFIX)/.ready:
	@[ -e $(EPONA_DEPS_PREFIX)/lib/libepona_onnx.a ] || { echo "no libraries in $(EPONA_DEPS_PREFIX)"; exit 1; }
endif

configure: deps .venv/.ready
	@[ -e $(BUILD)/build.ninja ] || cmake --preset release -DPython_EXECUTABLE=$(PY)

build: configure  ## build the release configuration with its tests
	@cmake --build $(BUILD) -j $(JOBS)

product: configure
	@cmake --build $(BUILD) -j $(JOBS) --target _epona epona_cli epona

# The wheel is made from the release build folder, so nothing is compiled twice.
install: product
	@scripts/install_wheel.sh $(PY) $(BUILD)

demo: install  ## recognise lines of text: IMAGE=path for your own picture
	@$(PY) scripts/models.py --only PP-OCRv6_rec_small
	@$(PY) scripts/demo.py $(if $(IMAGE),"$(IMAGE)")

test: build install  ## run every test
	@PY=$(PY) BUILD=$(BUILD) JOBS=$(JOBS) scripts/test.sh

test-openvino: build install  ## all core models at every level, conformance cases and .case files with OpenVINO before the CPU
	@$(PY) scripts/models.py --mark core
	@EPONA_OPENVINO_ALL=1 $(PY) -m pytest -q tests/providers/openvino
	@EPONA_OPENVINO_DIR=$$($(PY) -c "import openvino; print(openvino.__path__[0])") \
	  $(BUILD)/tests/epona_cases --provider OpenVINOExecutionProvider \
	  --expect tests/providers/openvino/case_failures.txt src tests/cases

bench: install  ## compare with onnxruntime and OpenVINO
	@$(PY) scripts/models.py --mark bench
	@$(PY) bench/peers.py $(BENCH)

# asan and tsan: the C++ tests and the models that are there, under the sanitizers. Configured once, then built and run.
MODELS_DIR := $(or $(EPONA_MODELS),models)
asan tsan: deps .venv/.ready  ## C++ tests under address and undefined-behaviour (or thread) sanitizers
	@scripts/setup.sh clang
	@[ -e build/$@/build.ninja ] || cmake --preset $@
	@cmake --build build/$@ -j $(JOBS) --target epona_tests epona_cases epona_cli
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ctest --test-dir build/$@ --output-on-failure -j $(JOBS)
	@UBSAN_OPTIONS=halt_on_error=0 tests/sanitize_models.sh build/$@/bin/epona $(MODELS_DIR)

# Inputs that fail are left in build/fuzz. A model may ask for any amount of memory: more than 1 GB is refused.
FUZZ_SECONDS ?= 300
fuzz: deps .venv/.ready  ## fuzz the model loader for FUZZ_SECONDS (300), from the models of all .case files
	@scripts/setup.sh clang
	@[ -e build/asan/build.ninja ] || cmake --preset asan
	@cmake --build build/asan -j $(JOBS) --target model_fuzz
	@mkdir -p build/fuzz/found && $(PY) tests/fuzz/seeds.py build/fuzz/seeds
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=1024 \
	  build/asan/tests/model_fuzz build/fuzz/found build/fuzz/seeds -max_total_time=$(FUZZ_SECONDS) -timeout=60 \
	  -rss_limit_mb=6000 -malloc_limit_mb=1024000 -artifact_prefix=build/fuzz/ -max_len=8192

werror: deps .venv/.ready  ## compile everything with g++ and with clang, warnings being errors
	@scripts/setup.sh clang
	@for preset in release clang; do cmake --preset $$preset -B build/werror-$$preset -DPython_EXECUTABLE=$(PY) -DEPONA_PYTHON=ON \
	    -DEPONA_WERROR=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON && \
	  cmake --build build/werror-$$preset -j $(JOBS) || exit 1; done

test-browser: install  ## check the placement page in headless Chromium
	@scripts/setup.sh browser
	@$(PY) -m pytest -q tests/python/test_placement.py -k browser

lint: build  ## clang-format and clang-tidy: FILES=..., FILES=changed (since main) or all
	@scripts/setup.sh lint
	@JOBS=$(JOBS) scripts/lint.sh $(BUILD) $(FILES)

analyze: build  ## clang's static analyzer, on the same FILES
	@scripts/setup.sh lint
	@JOBS=$(JOBS) scripts/lint.sh $(BUILD) --analyze $(FILES)

format: .venv/.ready  ## format the C++ sources
	@git ls-files '*.cc' '*.h' | xargs .venv/bin/clang-format -i

clean:  ## remove what was built; .venv and third_party stay
	rm -rf build dist

help:
	@grep -hE '^[a-z ]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / - /'
