# The everyday commands; `make` without a target lists them.
.DEFAULT_GOAL := help
# The number of tests that run at once: if all tests ran at once, each would be so slow that its peers would time out.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 16
# The servers of the demos are on this machine; a proxy in the environment stays in use for other hosts.
comma := ,
export no_proxy := $(if $(no_proxy),$(no_proxy)$(comma))localhost,127.0.0.1,::1
.PHONY: help run demo-api demo-cache demo-cookies demo-download demo-faults demo-images demo-machine demo-media demo-observe demo-proxy demo-resilient demo-stream demo-trust test test-newer-libcurl check bench sanitize sabotage fuzz format clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-27s%s\n", $$1, $$2 }'

run: ## build and take the tour; URL=https://… downloads that instead
	@Scripts/setup
	@swift build --quiet --product Tour
	@"$$(swift build --show-bin-path)/Tour" $${URL:+"$$URL"}

demo-api: ## a small typed API client and its use
	@Scripts/setup
	@swift build --quiet --product TypedAPI
	@"$$(swift build --show-bin-path)/TypedAPI"

demo-cache: ## requests through a cache, with the reason why each response was used, validated or stored
	@Scripts/setup
	@swift build --quiet --product Cached
	@"$$(swift build --show-bin-path)/Cached"

demo-cookies: ## a scraper that logs in by a form, keeps its cookies in a file, and shows what the jar did
	@Scripts/setup
	@swift build --quiet --product Scraper
	@"$$(swift build --show-bin-path)/Scraper"

demo-download: ## several downloads with progress bars, interrupted and resumed; URLS='https://… …' downloads those instead
	@Scripts/setup
	@swift build --quiet --product Download
	@"$$(swift build --show-bin-path)/Download" $$URLS

demo-faults: ## Curlew's errors for about forty faults of a server
	@Scripts/setup
	@swift build --quiet --product Faults
	@"$$(swift build --show-bin-path)/Faults"

demo-images: ## images of a page as thumbnails on a contact sheet, gallery.png; PAGE=https://… takes another page
	@Scripts/setup
	@swift build --quiet --product Gallery
	@"$$(swift build --show-bin-path)/Gallery" $${PAGE:+"$$PAGE"} gallery.png

demo-machine: ## network paths, activity and memory pressure, in a network namespace of its own
	@Scripts/setup
	@swift build --quiet --product Watch
	@Examples/Watch/demo.sh "$$(swift build --show-bin-path)/Watch"

demo-media: ## a player that seeks in a film while it is being downloaded
	@Scripts/setup
	@swift build --quiet --product Player
	@"$$(swift build --show-bin-path)/Player"

demo-observe: ## interceptors, redirects, traces, logs and events of a few requests
	@Scripts/setup
	@swift build --quiet --product Observe
	@"$$(swift build --show-bin-path)/Observe"

demo-proxy: ## the same request direct, through HTTP and SOCKS proxies and over a Unix socket, with what each proxy saw
	@Scripts/setup
	@swift build --quiet --product Proxied
	@"$$(swift build --show-bin-path)/Proxied"

demo-resilient: ## retries, authentication, rate limits and circuit breakers with failing and busy servers
	@Scripts/setup
	@swift build --quiet --product Resilient
	@"$$(swift build --show-bin-path)/Resilient"

demo-stream: ## events, JSON, lines, XML and parts as they arrive, an event source that reconnects, forms with progress
	@Scripts/setup
	@swift build --quiet --product Stream
	@"$$(swift build --show-bin-path)/Stream"

demo-trust: ## the servers that each trust policy accepts, and the errors of refused servers
	@Scripts/setup
	@swift build --quiet --product PinnedTLS
	@"$$(swift build --show-bin-path)/PinnedTLS"

test: ## build and run all tests; SWIFT_TEST_FLAGS are passed on
	@Scripts/setup
	@Scripts/test test --disable-xctest $(SWIFT_TEST_FLAGS)

test-newer-libcurl: ## HTTP/2 and release tests with a newer libcurl, from Debian's backports, PyPI or CURLEW_LIBCURL
	@Scripts/setup
	@Scripts/newer-libcurl $(SWIFT_TEST_FLAGS)

check: ## the checks that run no test: format, imports, documentation, behaviours, public surface
	@Scripts/check

bench: ## compare Curlew with a plain C program on libcurl and with URLSession; BENCH_FLAGS are passed on
	@Scripts/setup
	@Benchmarks/run $(BENCH_FLAGS)

sanitize: ## run tests under the thread and the address sanitizer
	@Scripts/sanitize

sabotage: ## break the sources on purpose, one patch at a time, and check that a test fails
	@Scripts/sabotage

fuzz: ## feed parsers with random inputs, a minute for each; FUZZ_FLAGS are passed on
	@Scripts/fuzz $(FUZZ_FLAGS)

format: ## rewrite the sources in the project's format
	@swift format --in-place --parallel --recursive Sources Tests Examples Benchmarks/Sources \
		Package.swift Benchmarks/Package.swift

clean: ## remove all build products
	@rm -rf .build Benchmarks/.build
