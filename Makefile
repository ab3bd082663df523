# The commands of every day. `make` alone lists them.
.DEFAULT_GOAL := help
# How many tests run at once: with all of them, each would wait for the others longer than its peers wait for it.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 16
.PHONY: help run demo-api demo-download demo-faults demo-observe demo-resilient demo-stream demo-trust test test-newer-libcurl check bench sanitize sabotage fuzz format clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-27s%s\n", $$1, $$2 }'

run: ## build and take the tour; URL=https://… downloads that instead
	@Scripts/setup
	@swift build --quiet --product Tour
	@"$$(swift build --show-bin-path)/Tour" $${URL:+"$$URL"}

demo-api: ## a small typed API client, and what it is used for
	@Scripts/setup
	@swift build --quiet --product TypedAPI
	@"$$(swift build --show-bin-path)/TypedAPI"

demo-download: ## several downloads with bars, broken off and gone on with; URLS='https://… …' downloads those instead
	@Scripts/setup
	@swift build --quiet --product Download
	@"$$(swift build --show-bin-path)/Download" $$URLS

demo-faults: ## what Curlew says to each of some forty faults of a server
	@Scripts/setup
	@swift build --quiet --product Faults
	@"$$(swift build --show-bin-path)/Faults"

demo-observe: ## interceptors, redirects, traces, logs and events of a few requests
	@Scripts/setup
	@swift build --quiet --product Observe
	@"$$(swift build --show-bin-path)/Observe"

demo-resilient: ## what becomes of requests when servers fail, are busy or want to be asked less
	@Scripts/setup
	@swift build --quiet --product Resilient
	@"$$(swift build --show-bin-path)/Resilient"

demo-stream: ## events, JSON, lines, XML and parts as they arrive, an event source that reconnects, forms with progress
	@Scripts/setup
	@swift build --quiet --product Stream
	@"$$(swift build --show-bin-path)/Stream"

demo-trust: ## which trust policies accept which servers, and what a refusal says
	@Scripts/setup
	@swift build --quiet --product PinnedTLS
	@"$$(swift build --show-bin-path)/PinnedTLS"

test: ## build and run all tests; SWIFT_TEST_FLAGS are passed on
	@Scripts/setup
	@Scripts/test test --disable-xctest $(SWIFT_TEST_FLAGS)

test-newer-libcurl: ## HTTP/2 and release tests with a newer libcurl, from Debian's backports, PyPI or CURLEW_LIBCURL
	@Scripts/setup
	@Scripts/newer-libcurl $(SWIFT_TEST_FLAGS)

check: ## what a reviewer would look at first: format, rooms, documentation, behaviours
	@Scripts/check

bench: ## measure Curlew beside a plain C program on libcurl and URLSession; BENCH_FLAGS are passed on
	@Scripts/setup
	@Benchmarks/run $(BENCH_FLAGS)

sanitize: ## tests again under the thread and the address sanitizer
	@Scripts/sanitize

sabotage: ## break the sources on purpose, one patch at a time, and see whether a test notices
	@Scripts/sabotage

fuzz: ## feed parsers with inputs nobody would write, a minute for each; FUZZ_FLAGS are passed on
	@Scripts/fuzz $(FUZZ_FLAGS)

format: ## rewrite the sources in the project's format
	@swift format --in-place --parallel --recursive Sources Tests Examples Benchmarks/Sources \
		Package.swift Benchmarks/Package.swift

clean: ## remove everything that was built
	@rm -rf .build Benchmarks/.build
