# stint needs Go and nothing else to build. `make` alone lists the targets.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
BUILD    = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Build

.PHONY: build
build: bin/stint ## Build bin/stint, static and stripped

# The go command knows what is up to date; make asks it each time.
.PHONY: FORCE
FORCE:

bin/stint: FORCE
	$(BUILD) -o $@ ./cmd/stint

bin/stint-fault: FORCE ## Build stint with fault points and a movable clock, for tests only
	$(BUILD) -tags faultinject -o $@ ./cmd/stint

.PHONY: cross
cross: ## Build for linux/arm64, darwin/arm64 and windows/amd64 into dist/; check that tests compile there
	VERSION='$(VERSION)' scripts/cross.sh

.PHONY: demo
demo: ## Build stint and show it at work
	scripts/demo.sh

##@ Test

.PHONY: test
test: ## Install what the tests need, then run all of them; long rigs at a tenth of their size
	scripts/test.sh

.PHONY: test-long
test-long: ## The same with every rig at full size (up to an hour a package)
	STINT_LONG=1 scripts/test.sh

.PHONY: test-agents
test-agents: ## Drive real agent CLIs (AGENTS=codex,opencode,gemini,codex-acp) against a scripted model; installs them with npm
	scripts/test-agents.sh

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 5s)
	scripts/fuzz.sh

.PHONY: bench
bench: ## Measure stint beside the disk's floor and other engines, and check the targets
	VERSION='$(VERSION)' scripts/bench.sh

.PHONY: bench-go
bench-go: ## Run the Go benchmarks, without tests
	$(GO) test -run '^$$' -bench . -benchmem ./...

##@ Tidy

.PHONY: lint
lint: ## Lint with golangci-lint, or with gofmt and go vet where it is not installed
	scripts/lint.sh

.PHONY: fmt
fmt: ## Format the Go files
	gofmt -s -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":[^#]*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z\/-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
