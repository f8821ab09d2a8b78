package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/desired"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lacking begins the names of consoles that run without a permission.
const lacking = "lacking-"

var denials struct {
	sync.Mutex
	lines []string
}

// noteDenial keeps a line of a console's log if a request of the console was denied, and
// not by an API server that a test has just started.
func noteDenial(console, line string) {
	if strings.HasPrefix(console, lacking) || !strings.Contains(line, cluster.DenialMessage) || clustertest.SinceRestart() < 30*time.Second {
		return
	}
	denials.Lock()
	defer denials.Unlock()
	denials.lines = append(denials.lines, console+": "+line)
}

// noDenials returns an error if a request of a console with all permissions of
// deploy/rbac was denied in any test of this package.
func noDenials(*clustertest.Cluster) error {
	denials.Lock()
	defer denials.Unlock()
	if len(denials.lines) == 0 {
		return nil
	}
	return fmt.Errorf("%d requests were denied, although the console has all permissions of the chart:\n%s", len(denials.lines), strings.Join(denials.lines, "\n"))
}

// impersonated begins the verbs of constrained impersonation.
const impersonated = "impersonate-on:user-info:"

// rule is a rule of a role of the console.
type rule struct {
	role      client.Object // *rbacv1.ClusterRole or *rbacv1.Role
	namespace string        // in which the console has it; empty for all
	index     int
	rbacv1.PolicyRule
}

// name returns the role, the first resource and the first verb, which no other rule has.
func (r rule) name() string {
	resource := strings.TrimSuffix(r.Resources[0]+"."+r.APIGroups[0], ".")
	return r.role.GetName() + " " + resource + " " + strings.TrimPrefix(r.Verbs[0], impersonated)
}

// consoleRules returns all rules of the console's account in deploy/rbac.
func consoleRules(t *testing.T) (rules []rule) {
	t.Helper()
	for _, name := range []string{"console.yaml", "impersonation.yaml"} {
		file, err := os.Open(filepath.Join(clustertest.Root(), "deploy", "rbac", name))
		must(t, err)
		defer file.Close()
		for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			var object map[string]any
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else {
				must(t, err)
			}
			var role client.Object
			var of *[]rbacv1.PolicyRule
			switch object["kind"] {
			case "ClusterRole":
				parsed := &rbacv1.ClusterRole{}
				role, of = parsed, &parsed.Rules
			case "Role":
				parsed := &rbacv1.Role{}
				role, of = parsed, &parsed.Rules
			default:
				continue
			}
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, role))
			namespace := role.GetNamespace()
			if role.GetName() == "kuota-elastic" { // it is bound in the namespaces of teams
				namespace = ruleSpace
			}
			for i, r := range *of {
				rules = append(rules, rule{role: role, namespace: namespace, index: i, PolicyRule: r})
			}
		}
	}
	return rules
}

// ruleCheck is a function of the console that needs a rule.
type ruleCheck struct {
	function string
	remove   []string        // arguments of kubectl delete, before the console starts
	prepare  string          // a manifest that is applied then
	kinds    []string        // resources of which objects are created then
	setUp    func(*ruleTest) // runs then
	forget   bool            // remove the status of the policy then
	env      []string        // of the console
	run      func(*ruleTest, context.Context) error
}

// ruleTest is what the checks share.
type ruleTest struct {
	t          *testing.T
	c          *clustertest.Cluster
	admin, ada *http.Client
	address    string // of the console that is checked
	started    time.Time
}

const (
	ruleTeam  = "rules"
	ruleSpace = "hyperpod-ns-" + ruleTeam
	kindSpace = "rules-kinds" // has objects of all kinds that Kueue manages
)

var (
	ready       = ruleCheck{function: "the console becomes ready", run: func(*ruleTest, context.Context) error { return nil }}
	save        = ruleCheck{function: "an admin saves an allocation", run: (*ruleTest).saveFrom}
	electing    = []string{"KUOTA_LEADER_ELECTION=true"}
	leaseOf     = []string{"lease", "kuota", "-n", "kuota-system"}
	mapOf       = []string{"configmap", enforcement.ConfigMapName, "-n", "kuota-system"}
	delegatesOf = []string{"clusterrolebinding", desired.DelegatesName}
	bindingOf   = []string{"rolebinding", "kuota-members", "-n", ruleSpace}
)

// impersonationCache is longer than the API server caches that the console may
// impersonate a user for a request.
const impersonationCache = 11 * time.Second

// lostJob is a Job for which Kueue creates no Workload, because its priority class does
// not exist. The namespace of a team would reject it.
const lostJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: lost, namespace: ` + kindSpace + `, labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: missing}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
`

// ruleChecks has a check for each rule of the console's roles, by rule.name.
var ruleChecks = map[string]ruleCheck{
	"kuota-console computeallocations.kuota.dev get":                             ready,
	"kuota-console clusterpolicies.kuota.dev get":                                ready,
	"kuota-console computeallocations/status.kuota.dev patch":                    {function: "a changed allocation becomes Ready", run: (*ruleTest).reconciles},
	"kuota-console priorityclasses.scheduling.k8s.io get":                        {function: "an ElasticJob may ask for nodes", prepare: provisionManifest, run: (*ruleTest).mayProvision},
	"kuota-console elasticjobs.kuota.dev get":                                    growsTo("job/grows-base"),
	"kuota-console clusterqueues.kueue.x-k8s.io get":                             ready,
	"kuota-console workloads.kueue.x-k8s.io get":                                 ready,
	"kuota-console localqueues/pendingworkloads.visibility.kueue.x-k8s.io get":   {function: "the page of a pending task shows Kueue's order", run: shows("admin", "/tasks/"+ruleSpace+"/job/waits", "As Kueue reports it.")},
	"kuota-console namespaces get":                                               ready,
	"kuota-console resourcequotas get":                                           ready,
	"kuota-console nodes list":                                                   ready,
	"kuota-console pods list":                                                    {function: "the page of a task lists its pods", run: shows("admin", "/tasks/"+ruleSpace+"/job/runs", `id="pods-table"`)},
	"kuota-console jobs.batch list":                                              {function: "jobs without a Workload are tasks", prepare: lostJob, run: shows("admin", "/tasks/"+kindSpace+"/job/lost", "lost")},
	"kuota-console deployments.apps list":                                        servicesCheck("services without pods are tasks", 0, (*ruleTest).showsService, "deployments.apps", "statefulsets.apps"),
	"kuota-console jobsets.jobset.x-k8s.io list":                                 listsKind,
	"kuota-console leaderworkersets.leaderworkerset.x-k8s.io list":               listsKind,
	"kuota-console mpijobs.kubeflow.org list":                                    listsKind,
	"kuota-console trainjobs.trainer.kubeflow.org list":                          listsKind,
	"kuota-console rayjobs.ray.io list":                                          listsKind,
	"kuota-console appwrappers.workload.codeflare.dev list":                      listsKind,
	"kuota-console sparkapplications.sparkoperator.k8s.io list":                  listsKind,
	"kuota-console rolebindings.rbac.authorization.k8s.io get":                   ready,
	"kuota-console clusterroles.rbac.authorization.k8s.io bind":                  {function: "members are bound", remove: bindingOf, run: exists(bindingOf...)},
	"kuota-console clusterrolebindings.rbac.authorization.k8s.io create":         {function: "the admins of departments are bound", remove: delegatesOf, prepare: "{apiVersion: kuota.dev/v1alpha1, kind: Department, metadata: {name: rules}, spec: {members: [{kind: User, name: head@example.com, role: Admin}]}}", run: exists(delegatesOf...)},
	"kuota-console clusterroles.rbac.authorization.k8s.io get":                   {function: "the settings show which kinds members may create", run: shows("admin", "/settings", "; members may create it")},
	"kuota-console customresourcedefinitions.apiextensions.k8s.io get":           {function: "a deleted allocation is finalized", prepare: "{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: rules-leaves}, spec: {quota: [{instanceType: ml.g5.2xlarge, accelerators: 1}]}}", run: (*ruleTest).finalizes},
	"kuota-console validatingadmissionpolicies.admissionregistration.k8s.io get": {function: "enforcement is checked", forget: true, run: conditionIs("Enforcement")},
	"kuota-console mutatingadmissionpolicies.admissionregistration.k8s.io get":   {function: "the settings show who records authors", run: shows("admin", "/settings", "recorded by the API server")},
	"kuota-console subjectaccessreviews.authorization.k8s.io create":             {function: "a member sees a task", run: shows("ada", "/tasks/"+ruleSpace+"/job/runs", "runs")},
	"kuota-console tokenreviews.authentication.k8s.io create":                    {function: "a program reads with a token", run: (*ruleTest).readsByToken},
	"kuota-console events.events.k8s.io create":                                  {function: "a save is an event on the allocation", run: (*ruleTest).audits},

	"kuota-elastic jobs.batch create":              growsTo("job/grows-base"),
	"kuota-elastic services create":                growsTo("service/grows-pods"),
	"kuota-elastic configmaps create":              {function: "a member submits a script", remove: []string{"job/submitted", "configmap/submitted-script", "-n", ruleSpace}, run: (*ruleTest).submitsScript},
	"kuota-elastic jobsets.jobset.x-k8s.io patch":  startsAfter("jobsets.jobset.x-k8s.io"),
	"kuota-elastic pytorchjobs.kubeflow.org patch": startsAfter("pytorchjobs.kubeflow.org"),
	"kuota-elastic rayjobs.ray.io patch":           startsAfter("rayjobs.ray.io"),
	"kuota-elastic deployments.apps patch":         servicesCheck("how many replicas a stopped service had is kept", 1, (*ruleTest).remembers, "deployments.apps"),

	"kuota-sessions secrets get":                     ready,
	"kuota-leader leases.coordination.k8s.io create": {function: "the first replica leads", remove: leaseOf, env: electing, run: (*ruleTest).reconciles},
	"kuota-leader leases.coordination.k8s.io get":    {function: "a replica leads", remove: leaseOf, env: electing, run: (*ruleTest).reconciles},
	"kuota-revisions controllerrevisions.apps get":   {function: "a changed allocation has a new version", run: (*ruleTest).versions},
	"kuota-kueue-configuration configmaps get":       {function: "Kueue's configuration follows the policy", forget: true, run: conditionIs("GangScheduling")},
	"kuota-kueue-configuration deployments.apps get": {function: "Kueue's version is known", forget: true, run: (*ruleTest).knowsKueue},
	"kuota-enforcement configmaps create":            {function: "the parameters of admission policies are created", remove: mapOf, run: exists(mapOf...)},
	"kuota-enforcement configmaps get":               {function: "the parameters of admission policies are written", remove: mapOf, run: exists(mapOf...)},

	"kuota-impersonation users.authentication.k8s.io impersonate:user-info":   save,
	"kuota-impersonation computeallocations.kuota.dev get":                    save,
	"kuota-impersonation workloads.kueue.x-k8s.io get":                        {function: "a member stops a task", remove: []string{"job", "stops", "-n", ruleSpace}, prepare: jobManifest(ruleTeam, "stops", 50), run: (*ruleTest).stops},
	"kuota-impersonation jobs.batch get":                                      {function: "a member submits a task", remove: []string{"job", "submitted", "-n", ruleSpace}, run: (*ruleTest).submits},
	"kuota-impersonation events list":                                         {function: "the page of a task shows its events", run: showsNot("admin", "/tasks/"+ruleSpace+"/job/runs", "You cannot see the events")},
	"kuota-impersonation pods/log get":                                        {function: "a member reads a log", run: showsNot("ada", "/tasks/"+ruleSpace+"/job/runs/logs", "You cannot read these logs")},
	"kuota-impersonation clusterpolicies.kuota.dev get":                       {function: "an admin saves the policy", run: (*ruleTest).savesPolicy},
	"kuota-impersonation jobs.batch patch":                                    {function: "a member deletes a task", remove: []string{"job", "ends", "-n", ruleSpace}, prepare: jobManifest(ruleTeam, "ends", 50), run: deletes("ada", ruleSpace, "jobs.batch", "ends")},
	"kuota-impersonation elasticjobs.kuota.dev get":                           {function: "a member submits an elastic task", remove: []string{"elasticjobs.kuota.dev", "submitted", "-n", ruleSpace, "--wait=false"}, run: (*ruleTest).submitsElastic},
	"kuota-impersonation elasticjobs.kuota.dev patch":                         {function: "a member deletes an elastic task", remove: []string{"job/grows-base", "-n", ruleSpace}, prepare: elasticManifest, run: deletes("ada", ruleSpace, "elasticjobs.kuota.dev", "grows")},
	"kuota-impersonation jobsets.jobset.x-k8s.io get":                         submitsKind("JobSet", "jobset.x-k8s.io/jobset", "jobsets.jobset.x-k8s.io"),
	"kuota-impersonation pytorchjobs.kubeflow.org get":                        submitsKind("PyTorchJob", "kubeflow.org/pytorchjob", "pytorchjobs.kubeflow.org"),
	"kuota-impersonation rayjobs.ray.io get":                                  submitsKind("RayJob", "ray.io/rayjob", "rayjobs.ray.io"),
	"kuota-impersonation deployments.apps get":                                submitsServices("deployments.apps", "statefulsets.apps"),
	"kuota-impersonation leaderworkersets.leaderworkerset.x-k8s.io get":       submitsServices("leaderworkersets.leaderworkerset.x-k8s.io"),
	"kuota-impersonation jobsets.jobset.x-k8s.io patch":                       deletesKind,
	"kuota-impersonation mpijobs.kubeflow.org delete":                         deletesKind,
	"kuota-impersonation trainjobs.trainer.kubeflow.org delete":               deletesKind,
	"kuota-impersonation rayjobs.ray.io delete":                               deletesKind,
	"kuota-impersonation appwrappers.workload.codeflare.dev delete":           deletesKind,
	"kuota-impersonation sparkapplications.sparkoperator.k8s.io delete":       deletesKind,
	"kuota-impersonation leaderworkersets.leaderworkerset.x-k8s.io delete":    deletesKind,
	"kuota-impersonation deployments/scale.apps get":                          servicesCheck("a member resumes a service", 0, (*ruleTest).resumes, "deployments.apps", "statefulsets.apps"),
	"kuota-impersonation leaderworkersets/scale.leaderworkerset.x-k8s.io get": servicesCheck("a member resumes a LeaderWorkerSet", 0, (*ruleTest).resumes, "leaderworkersets.leaderworkerset.x-k8s.io"),
	"kuota-impersonation statefulsets.apps delete":                            deletesKind,
	"kuota-impersonation pods delete":                                         deletesKind,
}

// elasticManifest is an ElasticJob whose minimum is never admitted.
const elasticManifest = `
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: grows, namespace: ` + ruleSpace + `, labels: {kueue.x-k8s.io/queue-name: ` + ruleSpace + `-localqueue}}
spec:
  elasticPolicy: {minReplicas: 50, maxReplicas: 60, replicaIncrementStep: 10}
  template: {spec: {containers: [{name: train, image: example.com/train:1, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}}
`

// provisionManifest is an ElasticJob that runs and may ask for nodes.
var provisionManifest = strings.NewReplacer("name: grows", "name: asks", "{minReplicas: 50, maxReplicas: 60, replicaIncrementStep: 10}", "{minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1, growth: Provision}",
	"nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}", "cpu: 1}").Replace(elasticManifest)

// growsTo returns the check of a rule by which the console runs an ElasticJob: it creates
// an object of it.
func growsTo(object string) ruleCheck {
	return ruleCheck{function: "an ElasticJob has " + object, remove: []string{object, "-n", ruleSpace}, prepare: elasticManifest, run: exists(object, "-n", ruleSpace)}
}

// mayProvision reports an error until the ElasticJob of provisionManifest runs and the console had
// the time to look for room, and where it cannot read the class of growth that asks for nodes.
func (r *ruleTest) mayProvision(context.Context) error {
	got, err := r.c.TryKubectl("", "get", "elasticjobs.kuota.dev/asks", "-n", ruleSpace, "-o", "jsonpath={.status.state} {.status.conditions[*].reason}")
	if state, reasons, _ := strings.Cut(got, " "); err == nil && (state != string(v1alpha1.ElasticRunning) || strings.Contains(reasons, v1alpha1.ReasonClassMissing) || time.Since(r.started) < 8*time.Second) {
		err = fmt.Errorf("state %q, reasons %q", state, reasons)
	}
	return err
}

// TestEachRuleHasACheck checks that each rule of the console's roles has a check in
// TestEachRuleIsNeeded, and no other.
func TestEachRuleHasACheck(t *testing.T) {
	var names []string
	for _, r := range consoleRules(t) {
		names = append(names, r.name())
	}
	slices.Sort(names)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(ruleChecks)), names); diff != "" {
		t.Errorf("rules (-with a check +in deploy/rbac):\n%s", diff)
	}
}

// TestEachRuleIsNeeded takes away each rule of the console's roles, one after the
// other, and checks that a function of the console fails without it. With all rules
// each of these functions works.
func TestEachRuleIsNeeded(t *testing.T) {
	clustertest.OnlyVerify(t)
	r := newRuleTest(t)
	rules := consoleRules(t)
	for _, rule := range rules {
		check := kindCheck(rule, ruleChecks[rule.name()])
		t.Run(rule.name(), func(t *testing.T) {
			r := *r
			r.t = t
			took, err := r.attempt("rules", check, time.Minute)
			if err != nil {
				t.Fatalf("with all rules, %s: %v", check.function, err)
			}
			r.withoutRule(rule, func() {
				var err error
				for removed, cached := time.Now(), true; cached && err == nil; {
					cached = time.Since(removed) < impersonationCache
					_, err = r.attempt(lacking+"a-rule", check, 2*took+3*time.Second)
				}
				if errors.Is(err, context.DeadlineExceeded) { // no response yet
					_, err = r.attempt(lacking+"a-rule", check, 30*time.Second)
				}
				if err == nil {
					t.Errorf("without the rule %+v, %s all the same", rule.PolicyRule, check.function)
				}
				t.Logf("without the rule: %v", err)
			})
		})
	}
}

func newRuleTest(t *testing.T) *ruleTest {
	t.Helper()
	r := &ruleTest{t: t, c: clustertest.Get(t)}
	c := r.c
	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "jobs", "--all", "-n", ruleSpace, "--wait=false")
		_, _ = c.TryKubectl("", "delete", "computeallocation", ruleTeam, "--wait=false", "--ignore-not-found")
		_, _ = c.TryKubectl("", "delete", "department", "rules", "--wait=false", "--ignore-not-found")
		_, _ = c.TryKubectl("", "delete", "clusterpolicy", "default", "--wait=false", "--ignore-not-found")
		_, _ = c.TryKubectl("", "delete", "namespace", kindSpace, "--wait=false", "--ignore-not-found")
	})
	c.Apply(t, adminBinding)
	c.Apply(t, "{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy, metadata: {name: default}, spec: {taskPrioritization: TaskRanking, priorityClasses: [{name: training, weight: 60}]}}")
	c.Apply(t, "{apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: "+ruleTeam+"}, spec: {members: [{kind: Group, name: vision-team}], sharing: {strategy: DontLend}, quota: [{instanceType: ml.p5.48xlarge, accelerators: 2}]}}")
	r.createKinds()

	started, address, err := startConsole("rules", signInEnv(c)...)
	must(t, err)
	must(t, waitReady(address))
	c.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/"+ruleTeam, "clusterpolicy/default", "--timeout=180s")
	r.admin, r.ada = newUser(t, address, "admin"), newUser(t, address, "ada") // all consoles share sessions and cookies
	c.Apply(t, jobManifest(ruleTeam, "runs", 2))
	waitForUsage(t, ruleTeam, "2")
	c.Apply(t, jobManifest(ruleTeam, "waits", 1))
	r.stop(started)
	return r
}

// attempt runs a check with a console of its own, within a limit, and returns how long
// it took.
func (r *ruleTest) attempt(name string, check ruleCheck, limit time.Duration) (took time.Duration, err error) {
	c := r.c
	if check.remove != nil {
		c.Kubectl(r.t, "", append([]string{"delete", "--ignore-not-found"}, check.remove...)...)
	}
	if check.forget {
		c.Kubectl(r.t, "", "patch", "clusterpolicy", "default", "--subresource=status", "--type=merge", "-p", `{"status": {"conditions": [], "kueue": null}}`)
	}
	if check.prepare != "" {
		c.Apply(r.t, check.prepare)
	}
	for _, resource := range check.kinds {
		r.createObject(resource)
	}
	if check.setUp != nil {
		check.setUp(r)
	}
	env := append(signInEnv(c), check.env...)
	started, address, err := startConsole(name, env...)
	if err != nil {
		return 0, err
	}
	defer r.stop(started)
	r.address, r.started = address, time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	client := &http.Client{}
	if err := until(ctx, func() error { _, err := r.get(ctx, client, "/readyz"); return err }); err != nil {
		return 0, fmt.Errorf("not ready: %w", err)
	}
	err = until(ctx, func() error { return check.run(r, ctx) })
	return time.Since(r.started), err
}

// stop stops a console. It must stop without a permission, too: its caches may never
// have synced.
func (r *ruleTest) stop(console *exec.Cmd) {
	r.t.Helper()
	must(r.t, console.Process.Signal(syscall.SIGTERM))
	ended := make(chan struct{})
	go func() {
		_ = console.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		r.t.Error("the console did not stop after SIGTERM")
		must(r.t, console.Process.Kill())
		<-ended
	}
}

// until calls do until it returns nil. When ctx ends, it returns the last error before.
func until(ctx context.Context, do func() error) (last error) {
	for {
		if err := do(); err == nil {
			return nil
		} else if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// withoutRule calls do while the role lacks the rule.
func (r *ruleTest) withoutRule(rule rule, do func()) {
	r.t.Helper()
	set := func(remove bool) {
		role, _ := rule.role.DeepCopyObject().(client.Object)
		must(r.t, r.c.Client.Get(context.WithoutCancel(r.t.Context()), client.ObjectKeyFromObject(rule.role), role))
		of := func(o client.Object) *[]rbacv1.PolicyRule {
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				return &role.Rules
			}
			return &o.(*rbacv1.Role).Rules
		}
		all := slices.Clone(*of(rule.role))
		if remove {
			all = slices.Delete(all, rule.index, rule.index+1)
		}
		*of(role) = all
		must(r.t, r.c.Client.Update(context.WithoutCancel(r.t.Context()), role))
		r.waitAllowed(rule, !remove)
	}
	set(true)
	defer set(false)
	do()
}

// waitAllowed waits until the API server knows whether the console has a rule.
func (r *ruleTest) waitAllowed(rule rule, want bool) {
	r.t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: rule.namespace}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	clustertest.Eventually(r.t, time.Minute, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:kuota-system:kuota", ResourceAttributes: attributes}}
		if err := r.c.Client.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != want {
			return fmt.Errorf("%+v: allowed is %t, want %t", attributes, review.Status.Allowed, want)
		}
		return nil
	})
}

// get returns the body of a page of the console.
func (r *ruleTest) get(ctx context.Context, client *http.Client, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "text/html")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != strings.Split(path, "?")[0] {
		return "", fmt.Errorf("%s answers %s at %s", path, response.Status, response.Request.URL.Path)
	}
	return string(body), nil
}

// post submits values. A redirect to a form with errors is an error.
func (r *ruleTest) post(ctx context.Context, client *http.Client, path string, values url.Values) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address+path, strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := noRedirect(client).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		return err
	}
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || strings.Contains(location, "form=") {
		return fmt.Errorf("POST %s answers %s to %q: %s", path, response.Status, location, strings.Join(strings.Fields(page.Find(".notice").Text()), " "))
	}
	return nil
}

// submit opens a page, changes values of a form and saves it.
func (r *ruleTest) submit(ctx context.Context, client *http.Client, path, form string, changes map[string]string) error {
	body, err := r.get(ctx, client, path)
	if err != nil {
		return err
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader(body))
	if err != nil {
		return err
	}
	found := page.Find(form)
	if found.Length() == 0 {
		return fmt.Errorf("%s has no form %s", path, form)
	}
	values := url.Values{}
	found.Find("input[name], select[name], textarea[name]").Each(func(_ int, input *goquery.Selection) {
		value, _ := input.Attr("value")
		_, checked := input.Attr("checked")
		switch kind := input.AttrOr("type", ""); {
		case (kind == "radio" || kind == "checkbox") && !checked:
			return
		case goquery.NodeName(input) == "textarea":
			value = input.Text()
		case goquery.NodeName(input) == "select":
			option := input.Find("option[selected]")
			if option.Length() == 0 {
				option = input.Find("option").First()
			}
			value, _ = option.Attr("value")
		}
		values.Add(input.AttrOr("name", ""), value)
	})
	for name, value := range changes {
		values.Set(name, value)
	}
	values.Set("action", "save")
	return r.post(ctx, client, found.AttrOr("action", path), values)
}

func (r *ruleTest) client(user string) *http.Client {
	return map[string]*http.Client{"admin": r.admin, "ada": r.ada}[user]
}

// shows returns a check that a page contains a text.
func shows(user, path, want string) func(*ruleTest, context.Context) error {
	return func(r *ruleTest, ctx context.Context) error {
		body, err := r.get(ctx, r.client(user), path)
		if err == nil && !strings.Contains(body, want) {
			err = fmt.Errorf("%s does not contain %q", path, want)
		}
		return err
	}
}

// showsNot returns a check that a page does not contain a text.
func showsNot(user, path, not string) func(*ruleTest, context.Context) error {
	return func(r *ruleTest, ctx context.Context) error {
		body, err := r.get(ctx, r.client(user), path)
		if err == nil && strings.Contains(body, not) {
			err = fmt.Errorf("%s contains %q", path, not)
		}
		return err
	}
}

// exists returns a check that an object exists.
func exists(args ...string) func(*ruleTest, context.Context) error {
	return func(r *ruleTest, _ context.Context) error {
		out, err := r.c.TryKubectl("", append([]string{"get"}, args...)...)
		if err != nil {
			return errors.New(out)
		}
		return nil
	}
}

// saveFrom changes the weight of the team in the form.
func (r *ruleTest) saveFrom(ctx context.Context) error {
	return r.submit(ctx, r.admin, "/policies/allocations/"+ruleTeam+"/edit", "#allocation-form", map[string]string{"weight": fmt.Sprint(time.Now().UnixNano()%99 + 1)})
}

func (r *ruleTest) savesPolicy(ctx context.Context) error {
	return r.submit(ctx, r.admin, "/policies/cluster/edit", "#policy-form", map[string]string{"class-0-weight": fmt.Sprint(time.Now().UnixNano()%40 + 10)})
}

func (r *ruleTest) submits(ctx context.Context) error {
	return r.submit(ctx, r.ada, "/teams/"+ruleTeam+"/submit", "#submit-form", map[string]string{"name": "submitted", "image": "example.com/train:1", "accelerators": "1"})
}

// submitsScript submits a task that runs a script.
func (r *ruleTest) submitsScript(ctx context.Context) error {
	return r.submit(ctx, r.ada, "/teams/"+ruleTeam+"/submit", "#submit-form", map[string]string{"name": "submitted", "image": "example.com/train:1", "accelerators": "1", "script": "true"})
}

// submitsElastic submits a task that is never admitted, so that its Jobs do not matter.
func (r *ruleTest) submitsElastic(ctx context.Context) error {
	return r.submit(ctx, r.ada, "/teams/"+ruleTeam+"/submit", "#submit-form", map[string]string{"name": "submitted", "image": "example.com/train:1", "accelerators": "1", "pods": "50", "elastic": "true"})
}

// reconciles checks that the controllers reconcile a change of the allocation.
func (r *ruleTest) reconciles(ctx context.Context) error {
	changeWeight(r.t, ruleTeam)
	return until(ctx, func() error {
		out, err := r.c.TryKubectl("", "get", "computeallocation/"+ruleTeam, "-o", `jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Ready")].observedGeneration}`)
		if fields := strings.Fields(out); err != nil || len(fields) != 2 || fields[0] != fields[1] {
			return fmt.Errorf("generation and observed generation are %q (%v)", out, err)
		}
		return nil
	})
}

// versions checks that a change of the allocation has a version.
func (r *ruleTest) versions(ctx context.Context) error {
	const selector = "kuota.dev/revision-of=allocation." + ruleTeam
	before, err := r.c.TryKubectl("", "get", "controllerrevisions", "-n", "kuota-system", "-l", selector, "-o", "name")
	if err != nil {
		return errors.New(before)
	}
	changeWeight(r.t, ruleTeam)
	return until(ctx, func() error {
		after, err := r.c.TryKubectl("", "get", "controllerrevisions", "-n", "kuota-system", "-l", selector, "-o", "name")
		if err != nil || after == before {
			return fmt.Errorf("no new version (%v)", err)
		}
		return nil
	})
}

// finalizes deletes a team.
func (r *ruleTest) finalizes(context.Context) error {
	if out, err := r.c.TryKubectl("", "get", "computeallocation", "rules-leaves", "--ignore-not-found", "-o", "jsonpath={.metadata.name} {.metadata.finalizers}"); err != nil || out == "rules-leaves " {
		return fmt.Errorf("the allocation has no finalizer yet: %s (%v)", out, err)
	}
	if out, err := r.c.TryKubectl("", "delete", "computeallocation", "rules-leaves", "--timeout=5s", "--ignore-not-found"); err != nil {
		return errors.New(out)
	}
	return nil
}

// audits saves the allocation and checks that Kubernetes has an event of that.
// readsByToken checks that a service account is recognized by a new token: answers for the
// one before are reused.
func (r *ruleTest) readsByToken(ctx context.Context) error {
	token, err := r.c.TryKubectl("", "create", "token", "default", "-n", "default", "--audience", "kuota")
	if err != nil {
		return errors.New(token)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address+"/tasks.json", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("a token: got status %d", response.StatusCode)
	}
	return nil // the account is in no team
}

func (r *ruleTest) audits(ctx context.Context) error {
	if err := r.saveFrom(ctx); err != nil {
		return err
	}
	return until(ctx, func() error {
		out, err := r.c.TryKubectl("", "get", "events.v1.events.k8s.io", "-n", "default", "-o", `jsonpath={range .items[*]}{.regarding.name} {.reportingController} {.eventTime}{"\n"}{end}`)
		if err != nil {
			return errors.New(out)
		}
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			if len(fields) == 3 && fields[0] == ruleTeam && fields[1] == "kuota.dev/console" {
				if at, err := time.Parse(time.RFC3339Nano, fields[2]); err == nil && at.After(r.started) {
					return nil
				}
			}
		}
		return errors.New("no event of the save")
	})
}

// conditionIs returns a check that a condition of the policy, which was removed before,
// is true.
func conditionIs(condition string) func(*ruleTest, context.Context) error {
	return func(r *ruleTest, _ context.Context) error {
		out, err := r.c.TryKubectl("", "get", "clusterpolicy", "default", "-o", `jsonpath={.status.conditions[?(@.type=="`+condition+`")].status}`)
		if err != nil || out != "True" {
			return fmt.Errorf("condition %s is %q (%v)", condition, out, err)
		}
		return nil
	}
}

func (r *ruleTest) knowsKueue(context.Context) error {
	out, err := r.c.TryKubectl("", "get", "clusterpolicy", "default", "-o", "jsonpath={.status.kueue.version}")
	if err != nil || out == "" {
		return fmt.Errorf("the version of Kueue is %q (%v)", out, err)
	}
	return nil
}

// stops stops a task.
func (r *ruleTest) stops(ctx context.Context) error {
	return r.act(ctx, r.ada, ruleSpace, "jobs.batch", "stops", "stop")
}

// deletes returns a check that a user deletes a task.
func deletes(user, namespace, resource, name string) func(*ruleTest, context.Context) error {
	return func(r *ruleTest, ctx context.Context) error {
		return r.act(ctx, r.client(user), namespace, resource, name, "delete")
	}
}

// act runs an action on the task of an object.
func (r *ruleTest) act(ctx context.Context, client *http.Client, namespace, resource, name, action string) error {
	out, err := r.c.TryKubectl("", "get", resource, name, "-n", namespace, "-o", "jsonpath={.kind} {.metadata.uid} {.metadata.deletionTimestamp}")
	switch {
	case action == "delete" && strings.Contains(out, "NotFound"): // by an earlier attempt
		return nil
	case err != nil:
		return errors.New(out)
	}
	out, gone, _ := strings.Cut(strings.Replace(out, " ", "/", 1), " ")
	if action == "delete" && gone != "" {
		return nil
	}
	kind, uid, _ := strings.Cut(out, "/")
	if kind == "Pod" { // a group of one
		kind, uid = "PodGroup", ""
	}
	path := "/tasks/" + namespace + "/" + strings.ToLower(kind) + "/" + name
	if _, err := r.get(ctx, client, path); err != nil {
		return err
	}
	return r.post(ctx, client, path+"/"+action, url.Values{"uid": {uid}, "confirm": {name}})
}
