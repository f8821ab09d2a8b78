package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/queries"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// growing starts the controller of ElasticJobs once for all tests.
var growing = sync.OnceValue(func() error {
	c, err := cluster.New(clustertest.Current().Console, cluster.Options{Log: slog.New(slog.DiscardHandler), NoSessions: true})
	if err != nil {
		return err
	}
	service := queries.New(c, &access.Service{Cluster: c})
	if _, err := elastic.SetupWithManager(c.Manager, elastic.Options{Rooms: service.Rooms, Claims: service.Claims, Sources: service.IdleSources}); err != nil {
		return err
	}
	go func() { _ = c.Run(context.Background()) }()
	return nil
})

// elasticLab is a lab with an ElasticJob of one to three pods.
type elasticLab struct{ *lab }

func newElasticLab(t *testing.T) elasticLab {
	t.Helper()
	l := elasticLab{newLab(t)}
	if err := growing(); err != nil {
		t.Fatal(err)
	}
	l.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kuota-elastic, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-elastic}
subjects: [{kind: ServiceAccount, name: kuota, namespace: kuota-system}]
---
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: train, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: NAME-low}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 3, replicaIncrementStep: 1, gracefulShutdownTimeoutInSeconds: 0, scalingTimeoutInSeconds: 1, minStablePeriodSeconds: 0}
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
	t.Cleanup(func() {
		_, _ = l.c.TryKubectl("", "delete", "elasticjob", "train", "-n", l.name, "--ignore-not-found", "--timeout=20s")
	})
	return l
}

var trainAt = func(l elasticLab) tasks.Address {
	return tasks.Address{Namespace: l.name, Kind: v1alpha1.ElasticJobKind, Name: "train"}
}

func (l elasticLab) get() (e v1alpha1.ElasticJob) {
	l.t.Helper()
	if err := l.c.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.name, Name: "train"}, &e); err != nil {
		l.t.Fatal(err)
	}
	return e
}

// reaches waits until the ElasticJob has a size, and its task a state and a class.
func (l elasticLab) reaches(pods int32, state tasks.State, class string) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
		d, err := l.Tasks.Detail(ctx, l.member, l.name, v1alpha1.ElasticJobKind, "train", "")
		if err != nil {
			return err
		}
		if e := l.get(); e.Status.Replicas != pods || d.State != state || d.PriorityClass != l.name+"-"+class || state == tasks.Running && d.Size.Admitted != int64(pods) {
			return fmt.Errorf("it is %s with %d pods (%d by the page) in class %s, want %s with %d in %s", d.State, e.Status.Replicas, d.Size.Admitted, d.PriorityClass, state, pods, class)
		}
		return nil
	})
}

func (l elasticLab) base() string {
	l.t.Helper()
	return l.c.Kubectl(l.t, "", "get", "job", "train-base", "-n", l.name, "-o", "jsonpath={.metadata.uid} {.spec.parallelism}")
}

// tables returns the variables by size that each Job reads.
func (l elasticLab) tables() string {
	l.t.Helper()
	return l.c.Kubectl(l.t, "", "get", "jobs", "-n", l.name, "-o", `jsonpath={range .items[*]}[{.spec.template.spec.containers[0].env[?(@.name=="KUOTA_SCALE_CONFIG")].value}]{end}`)
}

// A member and an admin can take each action on an ElasticJob: it is one task. Nobody else
// can.
func TestActionsOnAnElasticJob(t *testing.T) {
	l := newElasticLab(t)
	l.reaches(3, tasks.Running, "low")
	base, at := l.base(), trainAt(l)
	for _, user := range []governance.User{l.member, l.admin} {
		d, err := l.Tasks.Detail(t.Context(), user, l.name, at.Kind, at.Name, "")
		l.must(err)
		offers, err := l.Offers(t.Context(), user, d)
		l.must(err)
		if diff := cmp.Diff([]actions.Offer{{Action: actions.Stop}, {Action: actions.Resize}, {Action: actions.Class}, {Action: actions.Delete}}, offers); diff != "" {
			t.Errorf("offers to %s (-want +got):\n%s", user.Name, diff)
		}
	}
	r, err := l.Review(t.Context(), l.member, at, actions.Stop)
	if err != nil || r.Obstacle != "" || r.Usage["nvidia.com/gpu"] != 3 || r.Growth["nvidia.com/gpu"] != 2 {
		t.Errorf("got the review of stop %q, usage %v, of it growth %v (%v)", r.Obstacle, r.Usage, r.Growth, err)
	}

	r, err = l.Review(t.Context(), l.member, at, actions.Resize)
	if err != nil || r.Obstacle != "" || r.Resizing == nil {
		t.Fatalf("got the review of resize %q, %+v (%v)", r.Obstacle, r.Resizing, err)
	}
	seen := r.Resizing.Generation
	smaller := actions.Sizes{Min: 1, Max: 2, Step: 1}
	if after := r.Resizing.After(smaller); after != 2 || r.Resizing.Pods != 3 || r.Resizing.Minimum != 1 {
		t.Errorf("got %+v, and %d pods after, want 2 of 3", r.Resizing, after)
	}
	l.refused(l.Resize(t.Context(), l.other, at, smaller, seen), governance.NotFound, "")
	l.refused(l.Resize(t.Context(), l.member, at, actions.Sizes{Min: 1, Max: 4, Step: 2}, seen), governance.Invalid, "cannot be reached from minReplicas in steps")
	l.must(l.Resize(t.Context(), l.member, at, smaller, seen))
	l.reaches(2, tasks.Running, "low")
	l.refused(l.Resize(t.Context(), l.admin, at, actions.Sizes{Min: 1, Max: 3, Step: 1}, seen), governance.Conflict, "was changed meanwhile")
	variables := []v1alpha1.ScaleConfig{{Replicas: 3, Env: []v1alpha1.ScaleVariable{{Name: "BATCH", Value: "8"}}}}
	l.must(l.Resize(t.Context(), l.admin, at, actions.Sizes{Min: 1, Max: 3, Values: []int32{1, 3}, Scale: variables}, l.get().Generation))
	l.reaches(3, tasks.Running, "low")
	if got := l.tables(); got != "[][]" {
		t.Errorf("the base and its new growth read %s, want what the base started with: nothing", got)
	}
	l.must(l.Resize(t.Context(), l.admin, at, actions.Sizes{Times: actions.Times{actions.GraceField: 90}}, l.get().Generation))
	resized := l.get()
	if got := actions.SizesOf(&resized.Spec); got.Times[actions.GraceField] != 90 || got.Times[actions.MostField] == 0 || !slices.Equal(got.Values, []int32{1, 3}) {
		t.Errorf("after a change of one time: got %+v, want the same sizes and other times", got)
	}
	if e := l.get(); e.Annotations[v1alpha1.AnnotationChangedBy] != l.admin.Name || e.Spec.ElasticPolicy.ReplicaIncrementStep != nil {
		t.Errorf("the ElasticJob is %+v", e)
	}
	if got := l.base(); got != base {
		t.Errorf("the base was %s, and is %s", base, got)
	}
	for _, want := range []string{"elasticPolicy.maxReplicas: 3 → 2", l.member.Name, "kind=ElasticJob", "change refused"} {
		if !strings.Contains(l.log.String(), want) {
			t.Errorf("the audit log lacks %q:\n%s", want, l.log)
		}
	}

	r, err = l.Review(t.Context(), l.member, at, actions.Class)
	if err != nil || r.Obstacle != "" || slices.ContainsFunc(r.Choices, func(c actions.Choice) bool { return c.Name == "kuota-growth" }) {
		t.Errorf("got the review of class %q, %+v (%v)", r.Obstacle, r.Choices, err)
	}
	l.must(l.SetClass(t.Context(), l.member, at, l.name+"-high"))
	l.reaches(3, tasks.Running, "high")

	l.must(l.Stop(t.Context(), l.member, at))
	l.reaches(0, tasks.Stopped, "high")
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := l.c.TryKubectl("", "get", "pods", "-n", l.name, "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("the stopped task has %s", out)
		}
		return err
	})
	l.must(l.Resume(t.Context(), l.admin, at))
	l.reaches(3, tasks.Running, "high")
	if got, table := l.tables(), `[{"3":{"BATCH":"8"}}]`; got != table+table {
		t.Errorf("the resumed base and its growth read %s, want %s twice", got, table)
	}

	l.must(l.Delete(t.Context(), l.member, at))
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		_, err := l.Tasks.Detail(ctx, l.member, l.name, at.Kind, at.Name, "")
		out, listed := l.c.TryKubectl("", "get", "elasticjobs,jobs,workloads,pods", "-n", l.name, "-o", "name")
		if governance.KindOf(err) != governance.NotFound || listed != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("left are %s (%w)", out, err)
		}
		return nil
	})
}

// What the form accepts, the API server accepts too, and nothing else.
func TestSizesAreCheckedAsByTheSchema(t *testing.T) {
	l := newElasticLab(t)
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 150 {
		z := actions.Sizes{Min: random.Int32N(5), Max: random.Int32N(9), Step: random.Int32N(4)}
		if random.IntN(2) == 0 {
			z.Step = 0
			for n := range int32(9) {
				if n > 0 && (random.IntN(3) == 0 || (n == z.Min || n == z.Max) && random.IntN(4) > 0) && (n >= z.Min && n <= z.Max || random.IntN(8) == 0) {
					z.Values = append(z.Values, n)
				}
			}
		}
		fields, most := actions.TimeFields()
		z.Times = actions.Times{}
		for _, field := range fields {
			if z.Times[field] = []int32{0, 5, 60, 3600}[random.IntN(4)]; random.IntN(20) == 0 {
				z.Times[field] = []int32{-1, most[field], most[field] + 1}[random.IntN(3)]
			}
		}
		times, err := json.Marshal(z.Times)
		l.must(err)
		step, values := "null", "null"
		if len(z.Values) > 0 {
			values = strings.ReplaceAll(fmt.Sprint(z.Values), " ", ",")
		} else {
			step = fmt.Sprint(z.Step)
		}
		patch := fmt.Sprintf(`{"spec": {"elasticPolicy": {"minReplicas": %d, "maxReplicas": %d, "replicaIncrementStep": %s, "replicaDiscreteValues": %s, %s}}}`, z.Min, z.Max, step, values, strings.Trim(string(times), "{}"))
		e := l.get()
		err = l.c.Client.Patch(t.Context(), &e, client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
		if problems := z.Problems(); (len(problems) == 0) != (err == nil) {
			t.Errorf("%+v: the form says %v, and the API server %v", z, problems, err)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 10 || accepted > 140 {
		t.Errorf("the API server accepted %d of 150 sizes: too few of one kind", accepted)
	}
}
