# What can be done here. `make` alone lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# State of a running instance, and what it is built from. Another LOCAL and
# KUOTA_PORT make another instance, beside the first.
LOCAL      ?= .local
BIN        := $(CURDIR)/.local/bin
BROWSER    := $(CURDIR)/.local/browser
PROMETHEUS := $(CURDIR)/.local/prometheus
KUOTA_PORT ?= 8080
SAMPLE     ?= all
KINDS      ?=
BINARIES   ?= auto
IMAGES     := $(CURDIR)/.local/images

# What is stamped into binaries and images: kuota version prints it.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS   = -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)

# What make generate writes, whether it is committed or not.
GENERATED = find deploy governance/api views docs -name '*.yaml' -o -name '*.json' -o -name 'zz_generated*.go' -o -name '*_templ.go' -o -name flags.md -o -name api-reference.md -o -name install.md | sort | xargs sha256sum
UP = $(BIN)/localcluster up --dir $(LOCAL) --bin $(BIN) --crds deploy/crds --rbac deploy/rbac --users cmd/localcluster/users.yaml \
	--nodes cmd/localcluster/samples/nodes.yaml --console $(BIN)/kuota --console-port $(KUOTA_PORT) \
	$(if $(filter none,$(SAMPLE)),,--samples cmd/localcluster/samples) $(if $(filter still,$(SAMPLE)),--still) $(if $(REAL_NODE),--real-node) $(if $(KINDS),--kinds $(KINDS))

# Kinds of jobs whose operators can run, and what run and up build besides the cluster.
ALL_KINDS = jobset,lws,ray,pytorch,trainer
OPTIONAL  = $(if $(REAL_NODE),real-node) $(if $(KINDS),kinds)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# The compiler frees memory with its process: collecting garbage takes a fifth of its
# processor time for nothing. The limit is for machines with little memory. For
# compilation alone: servers and tests have neither.
COMPILE = GOGC=off GOMEMLIMIT=$(shell awk -v cores="$$(nproc)" '/^MemTotal/ {printf "%d", $$2 / cores / 2}' /proc/meminfo)KiB

.PHONY: run
run: cluster kuota $(OPTIONAL) ## the whole product on this machine, until Ctrl-C; SAMPLE=still: sample tasks that stay; none: no samples
	@exec $(UP)

.PHONY: up
up: cluster kuota $(OPTIONAL) ## the same in the background; REAL_NODE=1, as root: with a node that runs containers; KINDS=jobset,ray: with the operators of these kinds
	@$(UP) --detach

.PHONY: down
down: ## stop what up started
	@if [ -x $(BIN)/localcluster ]; then $(BIN)/localcluster down --dir $(LOCAL); else echo "nothing is running"; fi

.PHONY: localcluster
localcluster:
	@$(COMPILE) go build -C cmd/localcluster -o $(BIN)/localcluster .

.PHONY: cluster
cluster: localcluster ## build Kubernetes, Kueue and KWOK, once for all checkouts; BINARIES=download: with release binaries
	@$(COMPILE) $(BIN)/localcluster build --binaries $(BINARIES) --bin $(BIN) --source cmd/localcluster

.PHONY: real-node
real-node: cluster ## build kubelet, containerd and CoreDNS, once, and install runc by apt: for REAL_NODE=1
	@cmd/localcluster/containerd/install.sh
	@$(COMPILE) $(BIN)/localcluster build --real-node --bin $(BIN) --source cmd/localcluster

.PHONY: kinds
kinds: cluster ## build the operators of all kinds of jobs, or of KINDS, each once: about two minutes for each
	@$(COMPILE) $(BIN)/localcluster build --kinds $(or $(KINDS),$(ALL_KINDS)) --bin $(BIN) --source cmd/localcluster

.PHONY: kuota
kuota: localcluster ## build the console, as tests are built, so that nothing is compiled twice; the Dockerfile builds what is shipped
	@$(COMPILE) $(BIN)/localcluster console --bin $(BIN) --ldflags '$(LDFLAGS)'

# The image, and the platform that it is for.
IMAGE      ?= kuota:$(VERSION)
PLATFORM   ?= linux/$(shell go env GOARCH)
IMAGE_ARGS ?=

# buildah 1.28 does not set BUILDPLATFORM in FROM.
.PHONY: image
image: ## build the image with buildah or docker; PLATFORM=linux/arm64, IMAGE=name:tag, IMAGE_ARGS=further flags
	@if command -v buildah >/dev/null; then build="buildah build --build-arg BUILDPLATFORM=linux/$(shell go env GOHOSTARCH)"; \
	elif command -v docker >/dev/null; then build="docker build"; \
	else echo "make image needs buildah or docker" >&2; exit 1; fi; \
	$$build --platform $(PLATFORM) --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --tag $(IMAGE) $(IMAGE_ARGS) .

# What is linked into the binary; static/vendor has what browsers load. The tool
# is pinned in a module of its own, because it needs more modules than the console.
.PHONY: sbom
sbom: kuota ## list the modules of the console as CycloneDX in .local/kuota.cdx.json
	@cd deploy/sbom && go tool cyclonedx-gomod bin -json -std -version '$(VERSION)' -output $(CURDIR)/.local/kuota.cdx.json $(BIN)/kuota

.PHONY: builder
builder: ## install what the tests of images need, and make the base images of the Dockerfiles, once; as root
	@e2e/image/install.sh $(IMAGES)
	@e2e/elastic/training/install.sh $(IMAGES)

.PHONY: browser
browser: ## install what the browser tests need
	@e2e/install.sh $(BROWSER)

.PHONY: prometheus
prometheus: ## unpack the Prometheus that tests ask; nothing of it is installed or started
	@governance/utilization/unpack.sh $(PROMETHEUS)

.PHONY: databases
databases: ## install the PostgreSQL server that tests start
	@governance/history/historytest/install.sh

.PHONY: generate
generate: ## write generated code anew
	@go tool templ fmt views
	@go tool templ generate -path views -log-level error
	@go tool controller-gen object crd:generateEmbeddedObjectMeta=true paths=./governance/api/... output:crd:artifacts:config=deploy/crds
	@go test ./cmd/kuota -run '^TestReferences$$' -update
	@cd deploy/charttest && go run ./generate

.PHONY: check
check: ## generate, format, vet, lint, check links; fails when generated files differ
	@before=$$($(GENERATED)); \
	$(MAKE) --no-print-directory generate; \
	after=$$($(GENERATED)); \
	diff <(echo "$$before") <(echo "$$after") || { echo "generated files differ from what is committed: commit what make generate wrote"; exit 1; }
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	@go mod verify >/dev/null
	@go vet ./... && go tool staticcheck ./...
	@go test -count=1 -run "Links|NamedTests|Versions" .
	@cd cmd/localcluster && go vet ./...
	@cd deploy/charttest && go vet ./... && go test -count=1 .

# make check vets; linking without symbols takes half the time.
SUITE = go build -o $(BIN)/suite ./e2e/suite && KUOTA_BROWSER=$(BROWSER) exec $(BIN)/suite

.PHONY: test
test: cluster kuota browser databases prometheus ## all tests that take under three minutes, about 40 minutes in all
	@$(COMPILE) $(BIN)/localcluster build --kinds jobset --bin $(BIN) --source cmd/localcluster
	@$(SUITE)

.PHONY: test-fast
test-fast: databases prometheus ## the tests that need neither a cluster nor a browser
	@$(SUITE) -fast

# Each fuzz target by its package; minimising long inputs would take the time.
FUZZ      = web:FuzzLocalAddress web:FuzzCookie web:FuzzQuery web/session:FuzzOpen web/signin:FuzzIdentity handlers:FuzzAllocationForm governance/quota:FuzzFill governance/quota:FuzzResolve handlers:FuzzPolicyForm governance/kueueconfig:FuzzForPolicy governance/imports:FuzzRead governance/logs:FuzzClean
# Runs rather than seconds: a run that meets the deadline counts as failed.
FUZZ_RUNS ?= 1000

# Other versions than those of this repository; each builds binaries of its own,
# in about five minutes. Once for each change of what is written into Kueue, and of
# the CRDs and admission policies.
OLDER  = $(CURDIR)/.local/older
OLDEST = $(CURDIR)/.local/oldest

# behavior FOLDER,RBAC,PACKAGES runs tests on a cluster with the binaries in a folder.
define behavior
$(BIN)/localcluster up --dir $(1)/cluster --bin $(1)/bin --crds deploy/crds --rbac $(2) --users cmd/localcluster/users.yaml \
	--nodes cmd/localcluster/samples/nodes.yaml --detach --resettable >/dev/null; \
trap '$(BIN)/localcluster down --dir $(1)/cluster' EXIT; \
failed=0; for package in $(3); do \
	$(BIN)/localcluster reset --dir $(1)/cluster; \
	KUOTA_TEST_CLUSTER=$(1)/cluster go test -count=1 -timeout 30m -v $$package | grep -E '^ *--- |^(ok|FAIL)|_test.go' || failed=1; \
done; exit $$failed
endef

.PHONY: older
older: cluster ## the behavior tests on the oldest Kueue that Kuota works with
	@$(COMPILE) $(BIN)/localcluster build --bin $(OLDER)/bin --source cmd/localcluster --kueue cmd/localcluster/older
	@$(call behavior,$(OLDER),deploy/rbac,./e2e/behavior)

# What helm template renders for an API server without constrained impersonation and
# mutating admission policies.
.PHONY: oldest
oldest: cluster ## the tests of behavior, enforcement and controllers on the oldest Kubernetes that Kuota works with
	@$(COMPILE) $(BIN)/localcluster build --bin $(OLDEST)/bin --source cmd/localcluster --kubernetes cmd/localcluster/oldest
	@rm -rf $(OLDEST)/rbac && mkdir $(OLDEST)/rbac && cp deploy/rbac/*.yaml $(OLDEST)/rbac && rm $(OLDEST)/rbac/{changed-by,time-limits}.yaml && cp deploy/rbac/legacy/*.yaml $(OLDEST)/rbac
	@$(call behavior,$(OLDEST),$(OLDEST)/rbac,./e2e/behavior ./e2e/bypasses ./governance/reconcile)

.PHONY: fuzz
fuzz: ## fuzz each target FUZZ_RUNS times
	@for target in $(FUZZ); do go test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZ_RUNS)x -fuzzminimizetime 1x ./$${target%:*} | grep -v '^fuzz: elapsed' || exit 1; done

.PHONY: verify
verify: check test fuzz builder real-node kinds ## what takes longer: run before an issue is closed
	@KUOTA_BROWSER=$(BROWSER) KUOTA_VERIFY=1 go test -count=1 -timeout 60m -run '^(TestGroupLostAtTheProvider|TestLogs)$$' -v ./e2e
	@KUOTA_VERIFY=1 go test -count=1 -p 1 -timeout 120m ./e2e/alerting ./e2e/behavior ./e2e/elastic ./e2e/interrupted ./e2e/kinds ./e2e/preemptionloops ./e2e/replicas ./e2e/shares ./governance/adopt
	@KUOTA_BROWSER=$(BROWSER) KUOTA_TEST_AUDITED=1 go test -count=1 -timeout 30m ./e2e # each action of all tests is activity once
	@KUOTA_BROWSER=$(BROWSER) KUOTA_VERIFY=1 go test -count=1 -timeout 60m -run '^TestEachRule' -v ./e2e
	@KUOTA_BROWSER=$(BROWSER) KUOTA_VERIFY=1 KUOTA_TEST_KINDS=lws go test -count=1 -timeout 30m -run '^TestServices$$' -v ./e2e
	@KUOTA_VERIFY=1 go test -count=1 -run '^TestTailMemory$$' -v ./governance/logs
	@cd deploy/charttest && KUOTA_VERIFY=1 go test -count=1 -timeout 20m -run '^TestUpgradeAndRollback$$' -v ./installed
	@cd cmd/localcluster && LOCALCLUSTER_BIN=$(BIN) go test -count=1 -timeout 20m -run '^(TestRealNode|TestOperators|TestKindsOnRealNode)$$' -v .
	@cd deploy/charttest && KUOTA_BROWSER=$(BROWSER) KUOTA_IMAGES=$(IMAGES) go test -count=1 -timeout 30m -run '^TestRealNode$$' -v ./installed
	@KUOTA_VERIFY=1 KUOTA_IMAGES=$(IMAGES) go test -count=1 -timeout 20m -v ./e2e/elastic/training
	@KUOTA_VERIFY=1 KUOTA_IMAGES=$(IMAGES) go test -count=1 -timeout 60m -v ./e2e/image
	@KUOTA_VERIFY=1 go test -count=1 -run '^TestSBOM$$' .
	@KUOTA_VERIFY=1 go test -count=1 -timeout 120m -run '^TestSimulateReplay$$' -v ./governance/estimate
	@$(MAKE) --no-print-directory truth SEEDS=200 BY_KUOTA=10 PREVIEWS=50
	@$(MAKE) --no-print-directory elastic SEQUENCES=150
	@$(MAKE) --no-print-directory older
	@$(MAKE) --no-print-directory oldest
	@go test -race -count=1 -p 1 -timeout 60m ./governance/... ./handlers ./web/...

# Each on a cluster of its own: deleting the thousand teams of one test takes minutes.
BENCH = e2e:TestFigures e2e:TestReviews e2e:TestLogFigures e2e:TestThousandAllocations e2e/replicas:TestThousandAllocationsOfTwoReplicas e2e:TestManyTasks governance/history:TestYear governance/history:TestMonth handlers/usage:TestMonth governance/alerts:TestFigures governance/simulate/worker:TestFigures e2e/truth:TestFigures e2e/elastic:TestFigures

.PHONY: bench
bench: cluster kuota browser databases ## measure; prints one `name value unit` line per figure
	@for test in $(BENCH); do KUOTA_BROWSER=$(BROWSER) KUOTA_BENCH=1 go test -count=1 -timeout 40m -run "^$${test#*:}$$" -v ./$${test%:*} | sed -un 's/^figure //p; /^--- FAIL/p; /_test.go:.*want/p'; done

# How many cohorts of make truth, half of them under FairShare, how many of them run
# through Kuota too, and how many changes are previewed and made; TRUTH_ARGS='-seed 7
# -verbose' shows one of them.
SEEDS      ?= 1000
BY_KUOTA   ?= 40
PREVIEWS   ?= 300
TRUTH_ARGS ?=

.PHONY: truth
truth: cluster kuota ## make one change that the page of a waiting task offers in each of SEEDS=1000 cohorts on the real Kueue, and PREVIEWS=300 changes of allocations and the policy; prints how right the pages are
	@KUOTA_VERIFY=1 go test -count=1 -timeout 0 -run '^Test(Advice|Previews)$$' -v ./e2e/truth -args -seeds $(SEEDS) -by-kuota $(BY_KUOTA) -previews $(PREVIEWS) $(TRUTH_ARGS) | tee $(CURDIR)/.local/truth.log | grep -vE '^(=== |seed |  )'

# How many random sequences of events ElasticJobs go through, from which seed, and how
# many at once.
SEQUENCES    ?= 5000
FROM         ?= 1
AT_ONCE      ?= 8

.PHONY: elastic
elastic: cluster ## SEQUENCES=5000 random sequences of events around ElasticJobs on the real Kueue; prints how long what must not last lasted
	@KUOTA_VERIFY=1 go test -count=1 -timeout 0 -run '^TestSequences$$' -v ./e2e/elastic -args -sequences $(SEQUENCES) -from $(FROM) -at-once $(AT_ONCE) | tee $(CURDIR)/.local/elastic.log | grep -E '_test\.go:|^(---|ok|FAIL|panic)|^  +'

# The duration of the soak test; it ends after the round of faults that has begun.
SOAK ?= 30m

.PHONY: soak
soak: cluster kuota databases prometheus ## two replicas under load and faults for SOAK=30m; prints what bench prints, and failures
	@KUOTA_SOAK=$(SOAK) go test -count=1 -timeout 0 -run '^TestSoak$$' -v ./e2e/soak | tee $(CURDIR)/.local/soak.log | grep -E '^figure |_test\.go:|^(---|ok|FAIL|panic)' | sed 's/^figure //'
