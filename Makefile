# The front door. `make demo` and `make test` do everything, set-up included; `make help` lists the rest.
BUILD ?= build
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja

.PHONY: help bootstrap build demo test bench lint format asan fuzz install clean

help:     ## this list
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

bootstrap: ## install and fetch what the build needs
	@tools/bootstrap build

build: bootstrap ## the command, at build/winml
	@$(CONFIGURE) -DMODELKIT_TESTS=OFF >/dev/null && cmake --build $(BUILD) --target winml

demo: build ## build the sample model, evaluate it on real digits, measure it
	@tools/demo $(BUILD)/winml

test: bootstrap ## all tests
	@tools/bootstrap test-models
	@$(CONFIGURE) -DMODELKIT_TESTS=ON >/dev/null && cmake --build $(BUILD)
	@ctest --test-dir $(BUILD) --output-on-failure

bench: bootstrap ## benchmarks; see bench/README.md for the side-by-side runs
	@tools/bootstrap bench all-models
	@$(CONFIGURE) -DMODELKIT_BENCH=ON >/dev/null && cmake --build $(BUILD)
	@bench/run $(BUILD)

lint: bootstrap ## formatting, layering, file sizes, clang-tidy (LINT_BASE=REV: only on files changed since)
	@tools/bootstrap lint
	@$(CONFIGURE) -DMODELKIT_TESTS=ON >/dev/null
	@tools/lint $(BUILD)

format: ## clang-format everything
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

asan: bootstrap ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan
	@tools/bootstrap test-models
	@cmake -S . -B $(BUILD)-asan -G Ninja -DMODELKIT_SANITIZE=ON -DMODELKIT_TESTS=ON >/dev/null && cmake --build $(BUILD)-asan
	@ctest --test-dir $(BUILD)-asan --output-on-failure

fuzz: bootstrap ## each reader's fuzzer for FUZZ_SECONDS (default 60), in build-fuzz
	@tools/bootstrap lint test-models
	@cmake -S . -B $(BUILD)-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DMODELKIT_FUZZ=ON -DMODELKIT_SANITIZE=ON -DMODELKIT_TESTS=OFF >/dev/null && cmake --build $(BUILD)-fuzz
	@tools/fuzz $(BUILD)-fuzz

install: build ## to PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

clean: ## remove the build folders; what bootstrap fetched stays
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz
