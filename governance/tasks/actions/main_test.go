package actions_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const soon = clustertest.Patience

// ada is a member of the lab's team and nothing else; grace of another team.
const (
	ada   = "ada@example.com"
	grace = "grace@example.com"
)

var connection = sync.OnceValues(func() (*cluster.Cluster, error) {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	return cluster.New(clustertest.Current().Console, cluster.Options{Log: log, NoSessions: true})
})

var watching = sync.OnceValues(func() (*queries.Service, error) {
	c, err := connection()
	if err != nil {
		return nil, err
	}
	service := queries.New(c, &access.Service{Cluster: c})
	go func() { _ = c.Run(context.Background()) }()
	return service, nil
})

// lab is a namespace with a ClusterQueue of 4 GPUs, and its users.
type lab struct {
	*actions.Service
	t                    *testing.T
	c                    *clustertest.Cluster
	name                 string
	member, other, admin governance.User
	log                  *bytes.Buffer // the audit log
}

func newLab(t *testing.T) *lab {
	t.Helper()
	current := clustertest.Get(t)
	service, err := watching()
	if err != nil {
		t.Fatal(err)
	}
	c, _ := connection()
	name := clustertest.Name("act")
	l := &lab{
		t: t, c: current, name: name, log: &bytes.Buffer{},
		member: governance.User{Name: name + ada}, other: governance.User{Name: name + grace},
		admin: governance.User{Name: name + "admin@example.com", Groups: []string{name + "-admins"}},
	}
	permission := &access.Service{Cluster: c}
	l.Service = &actions.Service{Cluster: c, Access: permission, Tasks: service, Audit: &audit.Recorder{Cluster: c, Log: slog.New(slog.NewTextHandler(l.log, nil))}}
	for _, namespace := range []string{name, name + "-other"} {
		l.apply(strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: SPACE}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: SPACE}
spec: {clusterQueue: NAME}
`, "SPACE", namespace))
	}
	l.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-high}
value: 90
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: people, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME` + ada + `}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: people, namespace: NAME-other}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME` + grace + `}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: NAME-admins}]
`)
	t.Cleanup(func() {
		_, _ = l.c.TryKubectl("", "delete", "namespace", name, name+"-other", "--wait=false")
		_, _ = l.c.TryKubectl("", "delete", "clusterrolebinding,clusterqueue,workloadpriorityclass,resourceflavor", name, name+"-high", name+"-low", "--ignore-not-found", "--wait=false")
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // the caches and RBAC follow with a delay
		for _, user := range []governance.User{l.member, l.admin, l.other} {
			if _, err := service.List(ctx, user, index.Query{}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	return l
}

func (l *lab) apply(yaml string) {
	l.t.Helper()
	l.c.Apply(l.t, strings.ReplaceAll(yaml, "NAME", l.name))
}

// job submits a Job with this many pods of one GPU each. Empty is without a class.
func (l *lab) job(name string, pods int, class string) {
	l.t.Helper()
	if class != "" {
		class = ", kueue.x-k8s.io/priority-class: NAME-" + class
	}
	l.apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main%s}}
spec:
  parallelism: %d
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
      containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]
`, name, class, pods))
}

func (l *lab) at(name string) tasks.Address {
	return tasks.Address{Namespace: l.name, Kind: "Job", Name: name}
}

// is waits until a task is in a state, and in a priority class unless it is empty.
func (l *lab) is(name string, state tasks.State, class string) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		if d, err = l.Tasks.Detail(ctx, l.member, l.name, "Job", name, ""); err != nil {
			return err
		}
		if d.NoWorkload || d.State != state || class != "" && d.PriorityClass != l.name+"-"+class {
			return fmt.Errorf("%s is %s in class %q (%s), want %s in %q", name, d.State, d.PriorityClass, d.Task.Message, state, class)
		}
		return nil
	})
	return d
}

// later waits until a new object has a later creation time: Kubernetes stores seconds.
func (l *lab) later(d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if time.Now().Unix() <= d.Submitted.Unix() {
			return fmt.Errorf("the clock is still in the second in which %s was created", d.Name)
		}
		return nil
	})
}

func (l *lab) review(name string, action actions.Action) actions.Review {
	l.t.Helper()
	r, err := l.Review(l.t.Context(), l.member, l.at(name), action)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// refused checks the kind of an error, and that its text contains want.
func (l *lab) refused(err error, kind governance.Kind, want string) {
	l.t.Helper()
	if governance.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), want) {
		l.t.Errorf("got %v, want kind %d and %q", err, kind, want)
	}
}
