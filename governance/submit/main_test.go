package submit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// soon is how long a state may take to come.
const soon = clustertest.Patience

func TestMain(m *testing.M) { clustertest.Main(m) }

// auditLog has what the audit recorder wrote.
var auditLog lockedBuffer

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// connection starts the console's controllers once for all tests.
var connection = sync.OnceValues(func() (*submit.Service, error) {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	c, err := cluster.New(clustertest.Current().Console, cluster.Options{Namespace: "kuota-system", NoSessions: true, Log: log})
	if err != nil {
		return nil, err
	}
	if _, err := reconcile.SetupWithManager(c.Manager, reconcile.Options{Naming: desired.DefaultNaming, Kueue: reconcile.DefaultKueueInstall, Revisions: c.Revisions}); err != nil {
		return nil, err
	}
	permission := &access.Service{Cluster: c}
	s := &submit.Service{
		Cluster: c, Access: permission, Tasks: queries.New(c, permission), Naming: desired.DefaultNaming,
		Audit: &audit.Recorder{Cluster: c, Log: slog.New(slog.NewTextHandler(&auditLog, nil))},
	}
	go func() {
		if err := c.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return s, nil
})

// world is the team of one test, with one member. It neither lends nor borrows, so that
// tests do not affect each other.
type world struct {
	*submit.Service
	*clustertest.Cluster
	member governance.User
	team   string
}

func setup(t *testing.T, gpus int64) world {
	t.Helper()
	current := clustertest.Get(t)
	s, err := connection()
	if err != nil {
		t.Fatal(err)
	}
	w := world{Service: s, Cluster: current, team: clustertest.Name("submit")}
	w.member = governance.User{Name: w.team + "@example.com"}
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: w.team}, Spec: v1alpha1.ComputeAllocationSpec{
		Quota:   []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &gpus}}},
		Sharing: v1alpha1.Sharing{Strategy: v1alpha1.DontLend},
		Members: []v1alpha1.Member{{Kind: "User", Name: w.member.Name}},
	}}
	if err := w.Client.Create(t.Context(), allocation); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = w.TryKubectl("", "delete", "jobs", "--all", "-n", desired.DefaultNaming.Namespace(w.team), "--wait=false")
		_, _ = w.TryKubectl("", "annotate", "computeallocation", w.team, "kuota.dev/drain=true", "--overwrite")
		_, _ = w.TryKubectl("", "delete", "computeallocation", w.team, "--wait=false")
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // until RBAC and the queue take effect
		team, err := w.Service.Team(ctx, w.member, w.team)
		if err == nil && (len(team.Pools) == 0 || !team.MaySubmit) {
			err = fmt.Errorf("the team is %+v", team)
		}
		return err
	})
	return w
}

// plan returns the plan of a request of this many pods with this many GPUs each.
func (w world) plan(t *testing.T, name string, pods int32, gpus int64) submit.Plan {
	t.Helper()
	team, err := w.Service.Team(t.Context(), w.member, w.team)
	if err != nil {
		t.Fatal(err)
	}
	plan, wrong := team.Plan(submit.Request{
		Name: name, Pool: "ml.p5.48xlarge", Pods: pods, PerPod: v1alpha1.Quantities{Accelerators: &gpus}, Image: "example.com/train:1",
	})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return plan
}

func (w world) check(t *testing.T, p submit.Plan) submit.Verdict {
	t.Helper()
	v, err := w.Check(t.Context(), w.member, p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// awaitStart waits until the prediction is that the plan starts, with a reach of an elastic
// task of this many pods: the tasks of other tests use the same nodes for a while.
func (w world) awaitStart(t *testing.T, p submit.Plan, reach int32) (v submit.Verdict) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		if v = w.check(t, p); v.Outcome != submit.Starts || v.Reach != reach {
			return fmt.Errorf("got %s up to %d pods, want %s up to %d: %+v", v.Outcome, v.Reach, submit.Starts, reach, v)
		}
		return nil
	})
	return v
}

func (w world) submit(t *testing.T, p submit.Plan) {
	t.Helper()
	done, err := w.Submit(t.Context(), w.member, p.Team, p.Request, "form-"+p.Name)
	if err != nil || done.Name != p.Name || !done.Listed {
		t.Fatalf("submitting %s: %+v, %v", p.Name, done, err)
	}
}

// is waits until matches returns true for a task.
func (w world) is(t *testing.T, name string, matches func(queries.Detail) bool) (d queries.Detail) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		if d, err = w.Tasks.Detail(ctx, w.member, desired.DefaultNaming.Namespace(w.team), "job", name, ""); err == nil && !matches(d) {
			err = fmt.Errorf("%s is %s with %+v", name, d.State, d.Verdict)
		}
		return err
	})
	return d
}
