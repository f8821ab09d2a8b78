package clustertest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long tests wait for what has no bound of its own. It is long,
// because several packages share the processors.
const Patience = 3 * time.Minute

// Verify reports whether make verify runs the tests, and so all of them. Without it tests
// leave out what takes long.
var Verify = os.Getenv("KUOTA_VERIFY") != ""

// OnlyVerify skips a test that only make verify runs.
func OnlyVerify(t testing.TB) {
	t.Helper()
	if !Verify {
		t.Skip("only make verify runs it: set KUOTA_VERIFY=1")
	}
}

// parallelTests is the default of Options.Parallel.
const parallelTests = 8

const (
	startLimit = 90 * time.Second
	stopLimit  = 20 * time.Second
)

// shared is the cluster of this test binary.
var shared *Cluster

// Cluster is a running local cluster.
type Cluster struct {
	Dir     string // state of the cluster: kubeconfig, logs, signin
	Config  *rest.Config
	Console *rest.Config  // the console's own account, with no other permissions
	Client  client.Client // as cluster-admin, without a cache

	kinds  []string // of Options
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// Main runs a package's tests with a cluster, and then exits. It stops the cluster
// unless the cluster is one of a Pool or of KUOTA_TEST_CLUSTER.
func Main(m *testing.M) { MainWith(m, Options{}) }

// Options configure MainWith.
type Options struct {
	// Parallel is how many tests run in parallel, parallelTests if it is 0. They mostly wait
	// for the cluster.
	Parallel int
	// RealNode starts a cluster with a node that runs containers. It needs root and make
	// real-node.
	RealNode bool
	// Kinds are kinds of jobs whose operators run in the cluster, with Kueue's
	// integrations, as localcluster up --kinds names them. The operators must be built:
	// make kinds. KUOTA_TEST_CLUSTER needs them too: make up KINDS=...
	Kinds []string
	// AuditPolicy and AuditWebhook are files of the API server: which requests it sends to
	// which receiver of audit events.
	AuditPolicy, AuditWebhook string
	// WithoutKuota starts a cluster without Kuota's CRDs and permissions.
	WithoutKuota bool
	// After is called after the tests; the package fails if it returns an error. It may
	// be nil.
	After func(*Cluster) error
}

// MainWith is Main with options.
func MainWith(m *testing.M, o Options) {
	code, err := run(m, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, o Options) (code int, err error) {
	dir, release, err := acquire(o)
	if err != nil {
		return 1, err
	}
	defer release()
	if shared, err = connect(dir); err != nil {
		return 1, err
	}
	shared.kinds = o.Kinds
	if err := flag.Set("test.parallel", strconv.Itoa(cmp.Or(o.Parallel, parallelTests))); err != nil {
		return 1, err
	}
	for deadline := time.Now().Add(startLimit); ; time.Sleep(100 * time.Millisecond) {
		if !o.WithoutKuota {
			err = shared.tryWrite(context.Background())
		}
		if err == nil {
			code = m.Run()
			if o.After != nil {
				err = o.After(shared)
			}
			return code, err
		} else if time.Now().After(deadline) {
			return 1, err
		}
	}
}

// acquire returns the folder of a cluster that no other test binary uses until
// release is called: that of KUOTA_TEST_CLUSTER, one of the pool, or a new one.
func acquire(o Options) (dir string, release func(), err error) {
	if dir = os.Getenv("KUOTA_TEST_CLUSTER"); dir != "" {
		return dir, func() {}, nil
	}
	if pool := os.Getenv(poolVariable); pool != "" && !o.RealNode && len(o.Kinds) == 0 && o.AuditWebhook == "" {
		return acquireFromPool(pool)
	}
	if dir, err = os.MkdirTemp("", "kuota-test-"); err != nil {
		return "", nil, err
	}
	stop, err := start(dir, o)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() { stop(); os.RemoveAll(dir) }, nil
}

// Get returns the cluster of this test binary.
func Get(t testing.TB) *Cluster {
	t.Helper()
	if shared == nil {
		t.Fatal("clustertest: the package's TestMain does not call clustertest.Main")
	}
	return shared
}

// Current returns the cluster of this test binary for code that all tests share. It is nil
// before Main.
func Current() *Cluster { return shared }

// Root returns the folder of the checkout.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// start starts a cluster, which runs until the caller calls stop. The cluster also
// stops when this process ends in any way, even by SIGKILL.
func start(dir string, o Options) (stop func(), err error) {
	bin := filepath.Join(Root(), ".local", "bin")
	program := filepath.Join(bin, "localcluster")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the cluster's binaries are missing: run make cluster first (%w)", err)
	}
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		return nil, err
	}
	state := filepath.Join(dir, "cluster")
	args := []string{"up", "--dir", state, "--bin", bin,
		"--users", filepath.Join(Root(), "cmd", "localcluster", "users.yaml"),
		"--nodes", filepath.Join(Root(), "cmd", "localcluster", "samples", "nodes.yaml")}
	if !o.WithoutKuota {
		args = append(args, "--crds", filepath.Join(Root(), "deploy", "crds"), "--rbac", filepath.Join(Root(), "deploy", "rbac"))
	}
	if len(o.Kinds) > 0 {
		args = append(args, "--kinds", strings.Join(o.Kinds, ","))
	}
	if o.AuditWebhook != "" {
		args = append(args, "--audit-policy", o.AuditPolicy, "--audit-webhook", o.AuditWebhook)
	}
	if o.RealNode {
		args = append(args, "--real-node")
	} else {
		args = append(args, "--resettable")
	}
	command := exec.Command(program, args...)
	// With the default GOGC the API server spends a quarter of its time on garbage
	// collection, and nearly half of it once its heap reaches the limit.
	memory := "3GiB"
	if os.Getenv("KUOTA_BENCH") != "" {
		memory = "14GiB" // one cluster at a time, with hundreds of thousands of objects
	}
	command.Env = append(os.Environ(), "GOGC=500", "GOMEMLIMIT="+memory)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the death signal is bound to the thread that starts the child
		err := command.Start()
		started <- err
		if err == nil {
			exited <- command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	stop = func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(stopLimit):
			_ = command.Process.Kill()
		}
	}
	deadline := time.After(startLimit)
	for {
		if _, err := os.Stat(filepath.Join(state, "ready")); err == nil {
			return stop, nil
		}
		select {
		case err := <-exited:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("the cluster did not start: %w\n%s", err, text)
		case <-deadline:
			stop()
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("the cluster was not ready after %s\n%s", startLimit, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func connect(dir string) (*Cluster, error) {
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil {
		dir = filepath.Join(dir, "cluster")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	console, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfigs", "kuota"))
	if err != nil {
		return nil, err
	}
	admin, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		return nil, err
	}
	mapper, err := newMapper(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Dir: dir, Config: config, Console: console, Client: admin, mapper: mapper}, nil
}

// Name returns prefix with a random suffix, so that no other test uses the name.
func Name(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:6])
}

// Kubectl runs kubectl as cluster-admin with input on its standard input, and
// returns its output. It fails the test when kubectl fails. It retries while Kueue
// restarts, which a policy that changes Kueue's configuration causes, because
// Kueue's webhooks do not answer then.
func (c *Cluster) Kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	return retryWrite(t, "kubectl "+strings.Join(args, " "), func() (string, error) { return c.TryKubectl(input, args...) })
}

// TryKubectl is Kubectl for calls that may fail. It does not retry. Calls that tests make
// often are answered in process; see parse.
func (c *Cluster) TryKubectl(input string, args ...string) (string, error) {
	if out, err := c.inProcess(context.Background(), args); !errors.Is(err, errKubectl) {
		return out, err
	}
	command := exec.Command(filepath.Join(Root(), ".local", "bin", "kubectl"), args...)
	// The cache in the home directory is by address: another cluster may have had this one's port.
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.Dir, "kubeconfig"), "KUBECACHEDIR="+filepath.Join(c.Dir, fmt.Sprintf("kubectl-%d", os.Getpid())), "GOGC=off") // it ends before it has used much memory
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// restarted is when Without last started the API server, in Unix nanoseconds.
var restarted atomic.Int64

// SinceRestart returns how long ago Without started the API server; years if it did not.
// At first the API server has not read any roles, and denies every request.
func SinceRestart() time.Duration { return time.Since(time.Unix(0, restarted.Load())) }

// Without stops the API server, calls do, and starts the API server again. It also
// restarts Kueue and the other components: their watches would take up to a minute
// to reconnect, and the following tests would wait for them. Without returns when
// Kuota's objects can be written.
func (c *Cluster) Without(t testing.TB, do func()) {
	t.Helper()
	c.Control(t, "stop", "kube-apiserver")
	defer func() {
		started := func() { restarted.Store(time.Now().UnixNano()) }
		started()
		defer started()
		c.Control(t, "start", "kube-apiserver")
		for _, component := range append([]string{"kube-controller-manager", "kube-scheduler", "kwok", "kueue"}, c.kinds...) {
			c.Control(t, "stop", component)
			c.Control(t, "start", component)
		}
		Eventually(t, rollLimit, c.tryWrite)
	}()
	do()
}

// tryWrite reports whether Kuota's objects can be written. For some seconds after its
// start the API server has not loaded the schema that its mutating admission policy
// needs, and answers 503.
func (c *Cluster) tryWrite(ctx context.Context) error {
	probe := &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: "a", Quantities: v1alpha1.Quantities{Instances: ptr.To[int64](1)}}}},
	}
	return c.Client.Create(ctx, probe, client.DryRunAll)
}

// Control stops or starts a component of the cluster, such as kube-apiserver
// or provider.
func (c *Cluster) Control(t testing.TB, verb, component string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(Root(), ".local", "bin", "localcluster"), verb, component, "--dir", c.Dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", verb, component, err, out)
	}
}

// Eventually calls check until it returns nil. After limit it fails the test with
// the last error that check returned. Between two calls it waits three times as long as a
// call takes, so that tests that wait with kubectl leave the processors to others.
func Eventually(t testing.TB, limit time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last error
	for {
		began := time.Now()
		if err := check(ctx); err == nil {
			return
		} else if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", limit, last)
		case <-time.After(min(max(20*time.Millisecond, 3*time.Since(began)), time.Second)):
		}
	}
}
