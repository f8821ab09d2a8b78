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
GENERATED = find deploy governance/api handlers views docs -name '*.yaml' -o -name '*.json' -o -name 'zz_generated*.go' -o -name '*_templ.go' -o -name flags.md -o -name architecture.md -o -name api-reference.md -o -name api-endpoints.md -o -name install.md | sort | xargs sha256sum
UP = $(BIN)/localcluster up --dir $(LOCAL) --bin $(BIN) --crds deploy/crds --rbac deploy/rbac --users cmd/localcluster/users.yaml \
	--nodes cmd/localcluster/samples/nodes.yaml --console $(BIN)/kuota --console-port $(KUOTA_PORT) \
	$(if $(filter none,$(SAMPLE)),,--samples cmd/localcluster/samples) $(if $(filter still,$(SAMPLE)),--still) $(if $(REAL_NODE),--real-node) $(if $(KINDS),--kinds $(KINDS))

# Kinds of jobs whose operators can run, and what run and up build besides the cluster.
ALL_KINDS = jobset,lws,ray,pytorch,trainer
OPTIONAL  = $(if $(REAL_NODE),real-node) $(if $(KINDS),kinds)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# The compiler frees memory with its process: collecting garbage takes a tenth to a
# fifth of its processor time for nothing. The limit is for machines with little memory. For
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

# The first time, the processors would wait for downloads: most of the standard library is
# compiled meanwhile, and the modules of the other programs are downloaded while this one is compiled.
.PHONY: localcluster
localcluster:
	@if [ ! -x $(BIN)/localcluster ]; then \
		echo "building; with empty caches the first start takes 8 to 12 minutes on two cores"; \
		$(COMPILE) go build net/http encoding/json text/template & go list -C cmd/localcluster -deps . >/dev/null; wait; \
		{ go list -C cmd/localcluster -deps tool; go list -deps ./cmd/kuota; } >/dev/null & \
	fi; \
	$(COMPILE) go build -C cmd/localcluster -o $(BIN)/localcluster .; wait

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
	@cmd/localcluster/prometheus/unpack.sh $(PROMETHEUS)

.PHONY: databases
databases: ## install the PostgreSQL server that tests start
	@governance/record/history/historytest/install.sh

# An instance of its own, beside one that runs.
PICTURED = .local-pictures

.PHONY: pictures
pictures: cluster kuota browser ## take the pictures of README.md and docs again, in light and dark
	@$(MAKE) --no-print-directory up SAMPLE=still LOCAL=$(PICTURED) KUOTA_PORT=0 >/dev/null
	@trap '$(BIN)/localcluster down --dir $(PICTURED) >/dev/null' EXIT; \
	go run ./e2e/pictures -url "$$(cat $(PICTURED)/url)" -driver $(BROWSER)

# The schema of a pod template accepts quantities and ports that Go types cannot hold. One such
# object would end the watch of all ElasticJobs.
READABLE = -e 's/\[eE](\\+|-)?((\[0-9]+(\\.\[0-9]\*)?)|(\\.\[0-9]+))/[eE](\\+|-)?[0-9]{1,2}/' -e '/^ *pattern:/{n;b' -e '}' \
	-e 's/^\( *\)x-kubernetes-int-or-string: true/\1maximum: 2147483647\n\1minimum: -2147483648\n&/'

.PHONY: generate
generate: ## write generated code again
	@go tool templ fmt views
	@go tool templ generate -path views -log-level error
	@go tool controller-gen object crd:generateEmbeddedObjectMeta=true paths=./governance/api/... output:crd:artifacts:config=deploy/crds
	@sed -i $(READABLE) deploy/crds/kuota.dev_elasticjobs.yaml
	@for crd in deploy/crds/*.yaml; do awk -f deploy/crds/bounds.awk $$crd >$$crd.new && mv $$crd.new $$crd; done
	@go test ./cmd/kuota -run '^TestReferences$$' -update
	@go test ./handlers -run '^TestOpenAPI$$' -update
	@go test . -run '^TestTrees$$' -update
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
	@go test -count=1 -run "Links|NamedTests|Trees|Versions" .
	@go run ./e2e/pictures -check
	@cd cmd/localcluster && go vet ./...
	@cd deploy/charttest && go vet ./... && go test -count=1 .

# make check vets; linking without symbols takes half the time.
SUITE = go build -o $(BIN)/suite ./e2e/suite && KUOTA_BROWSER=$(BROWSER) exec $(BIN)/suite

.PHONY: test
test: cluster kuota browser databases prometheus ## all tests, but those of make verify
	@$(SUITE)

.PHONY: test-fast
test-fast: databases prometheus ## the tests that need neither a cluster nor a browser
	@$(SUITE) -fast

# Each fuzz target by its package; minimising long inputs would take the time.
FUZZ      = $(shell git grep -E '^func Fuzz' -- '*_test.go' | sed -E 's|^(.*)/[^/]+:func (Fuzz[A-Za-z]+).*|\1:\2|')
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
	KUOTA_VERIFY=1 KUOTA_TEST_CLUSTER=$(1)/cluster go test -count=1 -timeout 30m -v $$package | grep -E '^ *--- |^(ok|FAIL)|_test.go' || failed=1; \
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
	@rm -rf $(OLDEST)/rbac && mkdir $(OLDEST)/rbac && cp deploy/rbac/*.yaml $(OLDEST)/rbac && rm $(OLDEST)/rbac/{changed-by,defaults,growth,priorities,template-labels,time-limits}.yaml && cp deploy/rbac/legacy/*.yaml $(OLDEST)/rbac
	@$(call behavior,$(OLDEST),$(OLDEST)/rbac,./e2e/behavior ./e2e/bypasses ./governance/controllers/reconcile)

.PHONY: fuzz
fuzz: ## fuzz each target FUZZ_RUNS times
	@for target in $(FUZZ); do go test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZ_RUNS)x -fuzzminimizetime 1x ./$${target%:*} | grep -v '^fuzz: elapsed' || exit 1; done

# Parts of make verify. VERIFIED has a line for each:
# the commit on which it last passed, the date, and how long it took.
PARTS    = check test fuzz race alerts behavior elastic interrupted kinds loops replicas shares adoption truth strange browser basepath permissions services chart node training image replay older oldest
VERIFIED = docs/verified.tsv

.PHONY: verify
verify: ## all, part by part: run those that a change touches before an issue is closed; PARTS="kinds chart" for some
	@failed=; for part in $(PARTS); do \
		echo "== $$part"; begin=$$(date +%s); \
		if make --no-print-directory verify-$$part; then \
			sed -i "/^$$part\t/d" $(VERIFIED); \
			printf '%s\t%s\t%s\t%d min\n' "$$part" "$(VERSION)" "$$(date -u +%F)" "$$((($$(date +%s) - begin + 59) / 60))" >>$(VERIFIED); \
			LC_ALL=C sort -o $(VERIFIED) $(VERIFIED); \
		else failed="$$failed $$part"; fi; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

VERIFY  = KUOTA_VERIFY=1 go test -count=1 -p 1 -timeout 55m
BROWSED = KUOTA_BROWSER=$(BROWSER) $(VERIFY)

# The main stories in the browser, for a console below a path of a host.
BASE_TESTS = TestSignIn|TestSignIn(FromLink|InAnotherTab)|TestSessionEndsInBrowser|TestTwoUsersInOneBrowser|TestPageWithoutTeam|TestPages|TestCommandLine|TestDeviceLogin|TestCreateAllocation.*|TestEditAllocation|TestCreatePoolWithAllocation|TestDeleteAllocation|TestImportAndRestore|TestEditPolicy|TestPolicyForMembers|TestPreview|TestSubmit.*|TestTaskActions|TestWatchTask|TestTaskList|TestElasticTaskPage|TestQueuePage|TestDashboard.*|TestInstancesTeamAndPastTask|TestUsage.*|TestAlertsPage|TestTypedValuesInHistory|TestLongFormInHistory|TestLeavingEditedForm|TestForgedReviewAddress

verify-check: check
verify-test: test
verify-fuzz: fuzz
verify-race: ; @go test -race -count=1 -p 1 -timeout 55m ./governance/... ./handlers ./web/...
verify-alerts: cluster prometheus ; @$(VERIFY) ./e2e/alerting
verify-behavior: cluster ; @$(VERIFY) ./e2e/behavior ./governance/tasks/queries ./governance/tasks/advice
verify-elastic: cluster ; @$(VERIFY) ./e2e/elastic && $(MAKE) --no-print-directory elastic SEQUENCES=500
verify-interrupted: cluster kuota ; @$(VERIFY) -timeout 130m ./e2e/interrupted ./e2e/degraded
verify-kinds: kinds ; @$(VERIFY) ./e2e/kinds
verify-loops: cluster ; @$(VERIFY) ./e2e/preemptionloops
verify-replicas: cluster kuota databases ; @$(VERIFY) ./e2e/replicas ./e2e/soak
verify-shares: cluster ; @$(VERIFY) ./e2e/shares
verify-adoption: cluster ; @$(VERIFY) ./governance/imports/adopt ./governance/cluster/uninstall ./governance/allocations
verify-truth: cluster kuota ; @$(VERIFY) -run "^Test(SlimSimulates|Moves)$$" ./governance/tasks/index ./e2e/truth && $(VERIFY) -run "^TestCondensed$$" ./governance/kueue/simulate/engine && go test -count=1 -timeout 20m ./e2e/truth && $(MAKE) --no-print-directory truth SEEDS=200 BY_KUOTA=10 PREVIEWS=50
verify-strange: strange
verify-browser: cluster kuota browser databases ; @$(BROWSED) -run '^TestLogs$$' ./e2e && KUOTA_TEST_AUDITED=1 $(BROWSED) -skip '^(TestEachRule.*|TestLogs)$$' ./e2e ./e2e/audited # each action of all tests is activity once
verify-basepath: cluster kuota browser ; @KUOTA_TEST_BASE=/kuota $(BROWSED) -run '^($(BASE_TESTS))$$' ./e2e
verify-permissions: cluster kuota browser ; @$(BROWSED) -run '^TestEachRule' ./e2e
verify-services: kuota kinds browser ; @KUOTA_TEST_KINDS=lws $(BROWSED) -run '^TestServices$$' ./e2e && $(VERIFY) -run '^TestTailMemory$$' ./governance/observe/logs
verify-chart: cluster kuota ; @cd deploy/charttest && $(VERIFY) -run '^TestUpgradeAndRollback$$' ./installed
verify-node: builder real-node kinds browser ; @cd cmd/localcluster && LOCALCLUSTER_BIN=$(BIN) go test -count=1 -timeout 20m -run '^(TestRealNode.*|TestOperators|TestKindsOnRealNode)$$' . && cd ../../deploy/charttest && KUOTA_IMAGES=$(IMAGES) $(BROWSED) -run '^TestRealNode$$' ./installed
verify-training: builder real-node ; @KUOTA_IMAGES=$(IMAGES) $(VERIFY) ./e2e/elastic/training
verify-image: builder real-node kuota ; @KUOTA_IMAGES=$(IMAGES) $(VERIFY) ./e2e/image && $(VERIFY) -run '^TestSBOM$$' .
verify-replay: ; @$(VERIFY) -run '^TestSimulateReplay$$' ./governance/tasks/estimate
verify-older: older
verify-oldest: oldest

# Each on a cluster of its own: deleting the thousand teams of one test takes minutes.
BENCH = e2e:TestFigures e2e:TestReviews e2e:TestLogFigures e2e:TestManyAllocations e2e/replicas:TestThousandAllocationsOfTwoReplicas e2e:TestLongQueue e2e:TestStopASweep e2e:TestTeamsOfASpreadsheet e2e:TestManyTasks governance/record/history:TestYear governance/record/history:TestMonth handlers/usage:TestMonth governance/alerts:TestFigures governance/kueue/simulate/worker:TestFigures governance/kueue/simulate/worker:TestCondensedFigures e2e/truth:TestFigures e2e/truth:TestKueueCycle e2e/elastic:TestFigures e2e/elastic:TestNight e2e/elastic:TestNightWithoutNodes

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
truth: cluster kuota ## make one change that the page of a waiting task offers in each of SEEDS=1000 cohorts on the real Kueue, and PREVIEWS=300 changes of allocations and the policy; prints how right the pages are, and how many verified changes of 1000 tasks leave a pod without a node
	@KUOTA_VERIFY=1 go test -count=1 -run '^TestVerifiedOnNodes$$' -v ./governance/tasks/advice | grep -E '^figure |_test\.go:|^(---|ok|FAIL|panic)'
	@KUOTA_VERIFY=1 go test -count=1 -timeout 0 -run '^Test(Advice|Previews)$$' -v ./e2e/truth -args -seeds $(SEEDS) -by-kuota $(BY_KUOTA) -previews $(PREVIEWS) $(TRUTH_ARGS) | tee $(CURDIR)/.local/truth.log | grep -vE '^(=== |seed |  )'

# How many random clusters of make strange, from which seed (FROM), or the file of one that
# failed: FILE=.local/strange/7.yaml.
STRANGE ?= 100
FILE    ?=

.PHONY: strange
strange: cluster kuota ## compare every page with STRANGE=100 random clusters of odd objects on the real Kueue; FILE= repeats one
	@KUOTA_VERIFY=1 go test -count=1 -timeout 0 -run '^TestStrange$$' -v ./e2e/strange -args -seeds $(STRANGE) -from $(FROM) $(if $(FILE),-file $(abspath $(FILE))) | tee $(CURDIR)/.local/strange.log | grep -E '^figure |_test\.go:|^(---|ok|FAIL|panic)|^  +'

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
