// Command suite runs the tests of this module in two groups beside each other, and prints how long
// each package took:
//
//	pure      no cluster, no browser   go test with its cache
//	cluster   clustertest.Main         several packages at once, on a pool of clusters
//
// The browser tests are the longest package. They run in two processes, each with a cluster
// of its own: the tests that run in parallel, and the others.
//
// Packages that only make verify runs are left out.
// With -fast it runs the first group only. A package belongs to a group by what
// its tests import. The exit code is 1 when a test failed.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

const (
	modulePackage  = "kuota.dev/kuota"
	clusterPackage = "kuota.dev/kuota/governance/cluster/clustertest"
	browserPackage = "kuota.dev/kuota/e2e"
	localcluster   = "cmd/localcluster" // a module of its own, which starts its own clusters
	charttest      = "deploy/charttest" // a module of its own: the Helm chart
)

// longest names packages that take long, longest first: they start first, so that
// none of them is left alone at the end.
var longest = []string{"queries", "behavior", "elastic", "bypasses", "degraded", "reconcile", "recorder", "allocations", "uninstall", "actions", "submit", "access"}

// verifyOnly are packages of which make verify runs all: random sequences, all
// interruptions, and measurements.
var verifyOnly = []string{"e2e/alerting", "e2e/audited", "e2e/elastic/training", "e2e/image", "e2e/interrupted", "e2e/kinds", "e2e/preemptionloops", "e2e/replicas", "e2e/shares", "e2e/soak", "e2e/truth"}

// sleepers is how many tests of a pure package may wait at the same time. One such package is
// tested at a time: more of them, or of clusters, would end no sooner on two cores, and the
// browser tests would meet the limits of what they wait for.
const sleepers = 8

func main() {
	fast := flag.Bool("fast", false, "run only tests that need neither a cluster nor a browser")
	clusters := flag.Int("clusters", 3, "how many clusters, at least 3; the browser tests begin on two of them")
	slowest := flag.Int("slowest", 20, "how many of the slowest tests are listed at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *fast, *clusters, *slowest); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, fast bool, clusters, slowest int) error {
	begin := time.Now()
	groups, err := divide(ctx)
	if err != nil {
		return err
	}
	r := &runner{browsers: make(chan struct{}, 4)}
	defer r.print(begin, slowest)
	if fast {
		return r.withoutCluster(ctx, groups)
	}
	pool, err := clustertest.NewPool()
	if err != nil {
		return err
	}
	defer pool.Close()
	started, beside := make(chan error, 1), make(chan error, 1)
	go func() { started <- startAll(pool, clusters) }()
	bin, env := append(os.Environ(), "LOCALCLUSTER_BIN="+filepath.Join(clustertest.Root(), ".local", "bin")), append(os.Environ(), pool.Env())
	flags := []string{"-count=1", "-timeout=60m"}
	go func() { // while the first cluster tests mostly wait
		beside <- errors.Join(
			r.withoutCluster(ctx, groups),
			r.test(ctx, bin, localcluster, nil, []string{"./..."}),
			r.test(ctx, env, charttest, flags, []string{"./installed"}))
	}()
	alone, err := serialTests(filepath.Join(clustertest.Root(), "e2e"))
	if err != nil {
		return err
	}
	pattern := "=^(" + strings.Join(alone, "|") + ")$"
	browser := make(chan error, 2)
	for which, folder := range map[string]string{"-run": "serial", "-skip": "parallel"} {
		artefacts := "KUOTA_ARTEFACTS=" + filepath.Join(clustertest.Root(), "e2e", "artefacts", folder)
		go func() {
			err := r.test(ctx, slices.Concat(env, []string{artefacts}), "", slices.Concat(flags, []string{which + pattern}), []string{browserPackage})
			r.browsers <- struct{}{}
			browser <- err
		}()
	}
	for range 2 { // the longest packages get the first clusters
		<-r.browsers
	}
	failed := r.test(ctx, env, "", slices.Concat(flags, []string{"-p=" + strconv.Itoa(clusters)}), groups.cluster)
	return errors.Join(failed, <-browser, <-browser, <-beside, <-started)
}

// serialTests returns the tests of a folder that do not run in parallel.
func serialTests(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, declared := range parsed.Decls {
			test, ok := declared.(*ast.FuncDecl)
			if ok && test.Name.Name != "TestMain" && strings.HasPrefix(test.Name.Name, "Test") && !slices.ContainsFunc(test.Body.List, isParallel) {
				names = append(names, test.Name.Name)
			}
		}
	}
	return names, nil
}

// isParallel reports whether a statement is t.Parallel().
func isParallel(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expression.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	return ok && function.Sel.Name == "Parallel"
}

// withoutCluster runs the tests that need no cluster.
func (r *runner) withoutCluster(ctx context.Context, groups groups) error {
	return errors.Join(
		// Tests of the module itself run go list, which the test cache does not see.
		r.test(ctx, nil, "", []string{"-count=1"}, groups.module),
		r.test(ctx, nil, "", []string{"-timeout=60m", "-p=1", "-parallel=" + strconv.Itoa(sleepers)}, groups.pure),
		// The chart is outside of its tests' module, so the test cache does not see it.
		r.test(ctx, nil, charttest, []string{"-count=1"}, []string{"."}))
}

// startAll starts the clusters one after the other: the first tests can begin
// with the first one.
func startAll(pool *clustertest.Pool, clusters int) error {
	for range clusters {
		if err := pool.Start(); err != nil {
			return err
		}
	}
	return nil
}

type groups struct{ module, pure, cluster []string }

// divide lists the packages of the module by group.
func divide(ctx context.Context) (g groups, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "./...").Output()
	if err != nil {
		return g, fmt.Errorf("list packages: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                                           string
			TestGoFiles, XTestGoFiles, TestImports, XTestImports []string
		}
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return g, err
		}
		switch {
		case len(p.TestGoFiles)+len(p.XTestGoFiles) == 0:
		case slices.Contains(verifyOnly, strings.TrimPrefix(p.ImportPath, modulePackage+"/")):
		case p.ImportPath == browserPackage: // run divides it
		case p.ImportPath == modulePackage:
			g.module = append(g.module, p.ImportPath)
		case slices.Contains(append(p.TestImports, p.XTestImports...), clusterPackage):
			g.cluster = append(g.cluster, p.ImportPath)
		default:
			g.pure = append(g.pure, p.ImportPath)
		}
	}
	rank := func(p string) int {
		if i := slices.Index(longest, path.Base(p)); i >= 0 {
			return i
		}
		return len(longest)
	}
	slices.SortStableFunc(g.cluster, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return g, nil
}

// runner runs go test, prints what a person needs to see of it, and keeps the
// results.
type runner struct {
	browsers chan struct{} // receives when a process of the browser tests starts, and when it has ended
	mu       sync.Mutex
	packages []result
	tests    []result
}

type result struct {
	line    string
	seconds float64
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// resultLine is what go test prints for a package, such as
// "ok  	kuota.dev/kuota/web	1.234s" or "FAIL	kuota.dev/kuota/web [build failed]".
var resultLine = regexp.MustCompile(`^(ok|FAIL|---)\s+(\S+/\S+)\s+(\(cached\)|[0-9.]+s|\[.*)`)

// test runs go test with flags on packages in a folder. It prints the result line of
// each package and all output of a test that failed. It returns an error when a test
// failed.
func (r *runner) test(ctx context.Context, env []string, dir string, flags, packages []string) error {
	args := slices.Concat([]string{"test", "-json", "-vet=off", "-ldflags=-s"}, flags, packages)
	command := exec.CommandContext(ctx, "go", args...)
	command.Env, command.Dir, command.Stderr = env, dir, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	output := map[[2]string][]string{} // of tests that have not ended, by package and name
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e = event{Action: "build-output", Output: lines.Text() + "\n"}
		}
		r.add(e, output)
	}
	return errors.Join(lines.Err(), command.Wait())
}

// add prints what an event completes.
func (r *runner) add(e event, output map[[2]string][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "start":
		if e.Package == browserPackage {
			r.browsers <- struct{}{}
		}
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if m := resultLine.FindStringSubmatch(e.Output); m != nil && e.Test == "" {
			line := strings.TrimSuffix(e.Output, "\n")
			seconds, _ := strconv.ParseFloat(strings.TrimSuffix(m[3], "s"), 64)
			r.packages = append(r.packages, result{line, seconds})
			fmt.Println(line)
			return
		}
		output[key] = append(output[key], e.Output)
	case "pass", "skip", "fail":
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			name := strings.TrimPrefix(e.Package, modulePackage+"/") + " " + e.Test
			r.tests = append(r.tests, result{fmt.Sprintf("%7.1fs %s", e.Elapsed, name), e.Elapsed})
		}
		if e.Action == "fail" {
			fmt.Print(strings.Join(output[key], ""))
		}
		delete(output, key)
		if e.Action != "fail" || e.Test != "" {
			return
		}
		for unfinished, text := range output { // of a panic, or of the package's time limit
			if unfinished[0] == e.Package {
				fmt.Print(strings.Join(text, ""))
				delete(output, unfinished)
			}
		}
	}
}

// print lists the slowest tests, and repeats the result lines of go test, the slowest
// package last.
func (r *runner) print(begin time.Time, slowest int) {
	byTime := func(a, b result) int { return cmp.Compare(a.seconds, b.seconds) }
	slices.SortStableFunc(r.tests, byTime)
	slices.SortStableFunc(r.packages, byTime)
	fmt.Printf("\nThe slowest of %d tests:\n", len(r.tests))
	for _, test := range r.tests[max(0, len(r.tests)-slowest):] {
		fmt.Println(test.line)
	}
	fmt.Printf("\n%d packages in %s, by the time they took:\n", len(r.packages), time.Since(begin).Round(time.Second))
	for _, p := range r.packages {
		fmt.Println(p.line)
	}
}
