package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// parallelTests is how many browser tests run in parallel. Tests that change shared
// state, such as the cluster policy or a component, are not parallel, so that they run
// before the parallel ones.
const parallelTests = 4

func TestMain(m *testing.M) {
	old, _ := filepath.Glob(filepath.Join(artefacts(), "*.db*"))
	for _, file := range old {
		_ = os.Remove(file)
	}
	options := clustertest.Options{Parallel: parallelTests, Kinds: strings.Fields(os.Getenv(kindsVariable)), After: noDenials}
	if os.Getenv(auditedVariable) != "" {
		if err := sendAudited(&options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	clustertest.MainWith(m, options)
}

// kindsVariable is the environment variable with kinds of jobs whose operators run in the
// cluster, as of clustertest.Options.
const kindsVariable = "KUOTA_TEST_KINDS"

// base is the base path of the consoles of this run, each of which is then behind a proxy
// that serves other applications too; usually empty.
var base = os.Getenv("KUOTA_TEST_BASE")

var (
	consoleOnce    sync.Once
	consoleURL     string
	consoleErr     error
	consoleProcess *exec.Cmd
	browser        = sync.OnceValues(launch)
)

// console starts the built console once, with sign-in, and returns its address.
func console(t testing.TB) string {
	t.Helper()
	c := clustertest.Get(t)
	consoleOnce.Do(func() {
		c.Apply(t, adminBinding)
		environment := signInEnv(c)
		if receiver != nil {
			environment = append(environment, receiver.Environment...)
		}
		if consoleProcess, consoleURL, consoleErr = startConsole("console", environment...); consoleProcess != nil {
			consoleErr = errors.Join(consoleErr, waitReady(consoleURL))
		}
	})
	if consoleErr != nil {
		t.Fatal(consoleErr)
	}
	return consoleURL
}

// replica starts another console, and stops it when the test ends.
func replica(t testing.TB, name string, env ...string) string {
	t.Helper()
	started, address, err := startConsole(name, env...)
	must(t, err)
	t.Cleanup(func() {
		_ = started.Process.Signal(syscall.SIGTERM)
		_ = started.Wait()
	})
	return address
}

// historyOf returns the history database of a console of this run.
func historyOf(name string) string {
	return filepath.Join(artefacts(), fmt.Sprintf("%s-%d.db", name, os.Getpid()))
}

// startConsole starts the built console on a free port, and returns its address once it
// listens. The console also stops when this process ends in any way.
func startConsole(name string, env ...string) (*exec.Cmd, string, error) {
	command := exec.Command(filepath.Join(clustertest.Root(), ".local", "bin", "kuota"), "serve", "--cluster-name", "e2e")
	command.Env = append(os.Environ(),
		"KUOTA_LISTEN=127.0.0.1:0", "KUOTA_HISTORY="+historyOf(name),
		"KUOTA_LEADER_ELECTION=false") // each console of this package records for itself; e2e/replicas elects
	var front *proxy
	if base != "" {
		front = newProxy()
		command.Env = append(command.Env, "KUOTA_URL="+front.URL+base)
	}
	command.Env = append(command.Env, env...)
	lines, err := command.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := consoles.StartChild(command, syscall.SIGTERM); err != nil {
		return nil, "", fmt.Errorf("start the console that make kuota builds: %w", err)
	}
	log, err := os.Create(filepath.Join(artefacts(), name+".log"))
	if err != nil {
		return nil, "", err
	}
	scanner := bufio.NewScanner(lines)
	address := ""
	for address == "" && scanner.Scan() {
		fmt.Fprintln(log, scanner.Text())
		noteDenial(name, scanner.Text())
		var line struct{ Msg, Address string }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "listening" {
			address = line.Address
		}
	}
	if address == "" {
		return nil, "", fmt.Errorf("the console did not start; see %s", log.Name())
	}
	go func() {
		for scanner.Scan() {
			fmt.Fprintln(log, scanner.Text())
			noteDenial(name, scanner.Text())
		}
	}()
	if front != nil {
		return command, front.URL + base, front.to(address)
	}
	return command, address, nil
}

// artefacts returns the folder of screenshots and logs, and creates it if necessary.
func artefacts() string {
	dir := os.Getenv("KUOTA_ARTEFACTS")
	if dir == "" {
		dir = filepath.Join(clustertest.Root(), "e2e", "artefacts")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		panic(err)
	}
	return dir
}

// launch starts the browser, which can only reach this machine.
func launch() (playwright.Browser, error) {
	dir := os.Getenv("KUOTA_BROWSER")
	if dir == "" {
		dir = filepath.Join(clustertest.Root(), ".local", "browser")
	}
	driver, err := playwright.Run(&playwright.RunOptions{DriverDirectory: dir, Stderr: os.Stderr})
	if err != nil {
		return nil, fmt.Errorf("start the browser driver that make browser installs: %w", err)
	}
	return driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: playwright.String("/usr/bin/chromium-headless-shell"),
		Args: []string{
			"--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
			"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
		},
	})
}

// visit opens a page in a new browser context that is signed in as the admin. The test
// fails if the browser's console has an error or a warning that contains none of allow.
func visit(t testing.TB, options playwright.BrowserNewContextOptions, allow ...string) playwright.Page {
	t.Helper()
	page := visitSignedOut(t, options, allow...)
	must(t, page.Context().AddCookies(cookiesOf(t, user(t, console(t), "admin"), console(t))))
	return page
}

// visitSignedOut is visit without signing in.
func visitSignedOut(t testing.TB, options playwright.BrowserNewContextOptions, allow ...string) playwright.Page {
	t.Helper()
	b, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	if options.BaseURL == nil {
		options.BaseURL = playwright.String(console(t))
	}
	if options.Viewport == nil {
		options.Viewport = &playwright.Size{Width: 1280, Height: 900}
	}
	context, err := b.NewContext(options)
	if err != nil {
		t.Fatal(err)
	}
	page, err := context.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	page.SetDefaultTimeout(pageTimeout)
	var mu sync.Mutex
	var problems []string
	report := func(problem string) {
		for _, a := range allow {
			if strings.Contains(problem, a) {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, problem)
	}
	page.OnConsole(func(m playwright.ConsoleMessage) {
		if m.Type() == "error" || m.Type() == "warning" {
			report(m.Type() + ": " + m.Text())
		}
	})
	page.OnPageError(func(err error) { report("exception: " + err.Error()) })
	must(t, page.AddInitScript(playwright.Script{Content: playwright.String(journal)}))
	t.Cleanup(func() {
		if t.Failed() {
			showFailure(t, page)
		}
		_ = context.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, p := range problems {
			t.Errorf("browser console: got %s, want nothing", p)
		}
	})
	return page
}
