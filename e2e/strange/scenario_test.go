package strange_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/yaml"
)

// scenario is what happens to a cluster: what it gets, and then what it loses. Each object
// is applied although another one was refused.
type scenario struct {
	Seed   uint64           `json:"seed"`
	Apply  []map[string]any `json:"apply"`
	Vanish []vanishing      `json:"vanish"`
}

// vanishing is an object that is deleted, with its finalizers.
type vanishing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// writeScenarios writes those that shared a cluster.
func writeScenarios(path string, all []*scenario) error {
	text, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
}

// readScenarios returns none without a path.
func readScenarios(path string) (all []*scenario, err error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, yaml.UnmarshalStrict(text, &all)
}

// Each list begins with what is usual.
var (
	quantities = []string{
		"4", "1", "16", "0", "500m", "2.5", "1500m", "100", "1e3", "1Ki", "10Gi", "1.5Gi", "100Gi", "1Ti", "1m", "1u", "1n", "999999", "1e9", "1e12",
		"8Ei", "9223372036854775807", "9223372036854775807m", "1e18", "1e19", "999999999999999999999", "1e30",
	}
	resourceNames = []string{
		"cpu", "memory", "nvidia.com/gpu", "pods", "ephemeral-storage", "hugepages-2Mi", "aws.amazon.com/neurondevice", "nvidia.com/mig-1g.5gb",
		"example.com/" + strings.Repeat("x", 63), "license", "a.b.c.example.org/d_e.f", "vpc.amazonaws.com/efa", "storage",
	}
	reclaims = []string{"Never", "LowerPriority", "Any"}
	withins  = []string{"Never", "LowerPriority", "LowerOrNewerEqualPriority"}
)

type generator struct {
	*rand.Rand
	*scenario
	prefix  string
	classes []string
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// usually picks one of the first values of a list in two of three cases.
func usually(g *generator, of []string, first int) string {
	if g.IntN(3) > 0 {
		of = of[:first]
	}
	return pick(g, of...)
}

func (g *generator) quantity() string { return usually(g, quantities, 10) }

func (g *generator) one(in int) bool { return g.IntN(in) == 0 }

// name returns a name of the seed; some have the length that the API server allows.
func (g *generator) name(kind string, i int) string {
	name := fmt.Sprintf("%s-%s%d", g.prefix, kind, i)
	if g.one(6) {
		name += "-" + strings.Repeat("n", 62-len(name))
	}
	return name
}

type object = map[string]any

func (g *generator) add(apiVersion, kind, namespace, name string, rest object) object {
	meta := object{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	for k, v := range rest {
		o[k] = v
	}
	g.Apply = append(g.Apply, o)
	return o
}

const kueueVersion = "kueue.x-k8s.io/v1beta2"

// generate returns the scenario of a seed: the same one each time.
func generate(seed uint64) *scenario {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 39)), scenario: &scenario{Seed: seed}, prefix: fmt.Sprintf("x%d", seed)}
	for i := range 1 + g.IntN(3) {
		name := g.name("class", i)
		g.classes = append(g.classes, name)
		g.add(kueueVersion, "WorkloadPriorityClass", "", name, object{"value": pick(g, 0, 10, 1000, -5, -2147483648, 2147483647)})
	}
	flavors := g.flavors()
	cohorts := g.cohorts(flavors)
	namespaces := g.namespaces()
	var queues []string
	for i := range 1 + g.IntN(4) {
		queues = append(queues, g.clusterQueue(i, flavors, cohorts))
	}
	local, observed := map[string][]string{}, map[string]bool{}
	for i := range 1 + g.IntN(5) {
		ns, queue := pick(g, namespaces...), pick(g, queues...)
		if g.one(12) {
			queue = g.prefix + "-no-queue"
		}
		name := g.name("lq", i)
		local[ns] = append(local[ns], name)
		if i := slices.Index(queues, queue); i >= 0 && !observed[queue] && !g.one(4) {
			observed[queue] = true
			g.observe(fmt.Sprintf("%s-t%d", g.prefix, i), ns, queue, name)
		}
		spec := object{"clusterQueue": queue}
		if g.one(10) {
			spec["stopPolicy"] = pick(g, "Hold", "HoldAndDrain")
		}
		g.add(kueueVersion, "LocalQueue", ns, name, object{"spec": spec})
	}
	if g.one(3) {
		g.allocation()
	}
	for i := range 1 + g.IntN(16) {
		ns := pick(g, namespaces...)
		queue := g.prefix + "-missing"
		if names := local[ns]; len(names) > 0 && !g.one(15) {
			queue = pick(g, names...)
		}
		if g.one(3) {
			g.workload(ns, queue, i)
		} else {
			g.job(ns, queue, i)
		}
	}
	g.vanish()
	return g.scenario
}

func (g *generator) flavors() (names []string) {
	n := 1 + g.IntN(4)
	if g.one(15) {
		n = 20
	}
	for i := range n {
		name := g.name("f", i)
		names = append(names, name)
		spec := object{}
		if g.one(2) {
			spec["nodeLabels"] = object{"node.kubernetes.io/instance-type": pick(g, "ml.p5.48xlarge", "ml.g6.12xlarge", "nothing-has-this")}
		}
		if g.one(5) {
			spec["nodeTaints"] = []any{object{"key": "strange", "value": "yes", "effect": pick(g, "NoSchedule", "NoExecute")}}
		}
		if g.one(5) {
			spec["tolerations"] = []any{object{"key": "strange", "operator": "Exists"}}
		}
		g.add(kueueVersion, "ResourceFlavor", "", name, object{"spec": spec})
	}
	return names
}

// resources returns names of resources, each once.
func (g *generator) resources() (names []string) {
	for range 1 + g.IntN(4) {
		if name := usually(g, resourceNames, 4); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// groups returns the resource groups of a ClusterQueue or a Cohort.
func (g *generator) groups(flavors []string, inCohort bool) []any {
	covered := g.resources()
	var quotas []any
	for _, flavor := range flavors {
		if len(quotas) > 0 && g.one(3) {
			continue
		}
		var of []any
		for _, name := range covered {
			quota := object{"name": name, "nominalQuota": g.quantity()}
			if inCohort && g.one(4) {
				quota["borrowingLimit"] = g.quantity()
			}
			if inCohort && g.one(4) {
				quota["lendingLimit"] = pick(g, "0", fmt.Sprint(quota["nominalQuota"]))
			}
			of = append(of, quota)
		}
		quotas = append(quotas, object{"name": flavor, "resources": of})
	}
	if g.one(20) {
		quotas = append(quotas, object{"name": g.prefix + "-no-flavor", "resources": quotas[0].(object)["resources"]})
	}
	return []any{object{"coveredResources": covered, "flavors": quotas}}
}

// cohorts returns names: some have an object, with quota or a parent. None is its own
// ancestor: Kueue 0.19.2 ends when a namespace changes while there is such a cycle.
func (g *generator) cohorts(flavors []string) []string {
	names := make([]string, g.IntN(4))
	for i := range names {
		names[i] = g.name("cohort", i)
	}
	for i, name := range names {
		if g.one(2) {
			continue
		}
		spec := object{}
		if g.one(2) {
			spec["parentName"] = g.prefix + "-no-cohort"
			if above := names[i+1:]; len(above) > 0 && !g.one(3) {
				spec["parentName"] = pick(g, above...)
			}
		}
		if g.one(2) {
			spec["resourceGroups"] = g.groups(flavors, spec["parentName"] != nil)
		}
		g.add(kueueVersion, "Cohort", "", name, object{"spec": spec})
	}
	return names
}

func (g *generator) namespaces() []string {
	names := make([]string, 1+g.IntN(3))
	for i := range names {
		names[i] = g.name("ns", i)
		o := g.add("v1", "Namespace", "", names[i], nil)
		if g.one(3) {
			o["metadata"].(object)["labels"] = object{"team": "a", desired.LabelGoverned: "true"}
		}
	}
	return names
}

func (g *generator) clusterQueue(i int, flavors, cohorts []string) string {
	spec := object{"namespaceSelector": object{}}
	switch g.IntN(12) {
	case 0:
		delete(spec, "namespaceSelector") // accepts no namespace
	case 1:
		spec["namespaceSelector"] = object{"matchLabels": object{"team": "a"}}
	}
	if len(cohorts) > 0 && !g.one(4) {
		spec["cohortName"] = pick(g, cohorts...)
	}
	from := g.IntN(len(flavors))
	spec["resourceGroups"] = g.groups(flavors[from:], spec["cohortName"] != nil)
	spec["queueingStrategy"] = pick(g, "BestEffortFIFO", "StrictFIFO")
	preemption := object{"withinClusterQueue": pick(g, withins...)}
	if spec["cohortName"] != nil {
		preemption["reclaimWithinCohort"] = pick(g, reclaims...)
	}
	spec["preemption"] = preemption
	if g.one(3) {
		spec["flavorFungibility"] = object{"whenCanBorrow": pick(g, "MayStopSearch", "TryNextFlavor"), "whenCanPreempt": pick(g, "MayStopSearch", "TryNextFlavor")}
	}
	if g.one(3) {
		spec["fairSharing"] = object{"weight": pick(g, "1", "0", "0.001", "1000", "1e6")}
	}
	if g.one(12) {
		spec["stopPolicy"] = pick(g, "Hold", "HoldAndDrain")
	}
	if g.one(15) {
		spec["admissionChecksStrategy"] = object{"admissionChecks": []any{object{"name": g.prefix + "-no-check"}}}
	}
	name := g.name("cq", i)
	g.add(kueueVersion, "ClusterQueue", "", name, object{"spec": spec})
	return name
}

// allocation adds one of Kuota's own, with odd amounts.
func (g *generator) allocation() {
	row := object{"instanceType": pick(g, "ml.p5.48xlarge", "ml.g6.12xlarge", "no-such-type")}
	switch g.IntN(3) {
	case 0:
		row["instances"] = pick(g, 1, 0, 2147483647)
	case 1:
		row["accelerators"] = pick(g, 1, 3, 0, 1000000)
	default:
		row["memory"], row["vCPU"] = pick(g, "1Ki", "10Gi", "0.1Gi", "1Ei", "9Ei"), pick(g, "1", "0.001", "3.14159", "1e9", "1e16")
	}
	spec := object{"quota": []any{row}, "fairShareWeight": pick(g, 0, 1, 100)}
	if g.one(2) {
		spec["sharing"] = object{"strategy": pick(g, "Lend", "LendAndBorrow", "DontLend")}
	}
	g.add("kuota.dev/v1alpha1", "ComputeAllocation", "", g.prefix+"-team", object{"spec": spec})
}

// observe adds an allocation that makes a ClusterQueue the one of a team, as it is.
func (g *generator) observe(team, namespace, clusterQueue, localQueue string) {
	g.add("kuota.dev/v1alpha1", "ComputeAllocation", "", team, object{"spec": object{
		"management": "Observe", "clusterQueueName": clusterQueue, "localQueueName": localQueue, "namespace": namespace,
	}})
}

// requests returns what one pod requests: mostly little, so that some pods start.
func (g *generator) requests() object {
	of := object{}
	for _, name := range g.resources() {
		if name == "pods" {
			continue // nothing requests it; Kueue counts it
		}
		of[name] = pick(g, "1", "1", "2", g.quantity())
	}
	return of
}

// container returns the container of a pod. Extended resources and huge pages need
// limits that equal the requests.
func (g *generator) container() object {
	requests := g.requests()
	c := object{"name": "main", "image": "busybox", "resources": object{"requests": requests, "limits": requests}}
	switch {
	case g.one(10):
		c["resources"] = object{}
	case g.one(10):
		c["resources"] = object{"limits": requests}
	}
	return c
}

func (g *generator) podSpec() object {
	spec := object{"restartPolicy": "Never", "containers": []any{g.container()}}
	if g.one(8) {
		spec["nodeSelector"] = object{"node.kubernetes.io/instance-type": pick(g, "ml.p5.48xlarge", "nothing-has-this")}
	}
	if g.one(8) {
		spec["tolerations"] = []any{object{"operator": "Exists"}}
	}
	if g.one(8) {
		spec["initContainers"] = []any{object{"name": "first", "image": "busybox", "resources": object{"requests": object{"cpu": g.quantity()}}}}
	}
	if g.one(10) {
		spec["overhead"] = object{"cpu": "100m"}
	}
	return spec
}

func (g *generator) class() string {
	if g.one(8) {
		return g.prefix + "-no-class"
	}
	return pick(g, g.classes...)
}

func (g *generator) job(ns, queue string, i int) {
	labels := object{"kueue.x-k8s.io/queue-name": queue}
	if g.one(2) {
		labels["kueue.x-k8s.io/priority-class"] = g.class()
	}
	if g.one(20) {
		delete(labels, "kueue.x-k8s.io/queue-name")
	}
	parallelism := pick(g, 1, 1, 2, 3, 5, 30)
	o := g.add("batch/v1", "Job", ns, g.name("job", i), object{"spec": object{
		"parallelism": parallelism, "completions": parallelism * pick(g, 1, 1, 2), "suspend": true,
		"template": object{"spec": g.podSpec()},
	}})
	o["metadata"].(object)["labels"] = labels
}

// workload adds one without a job, as other controllers of jobs create them.
func (g *generator) workload(ns, queue string, i int) {
	var sets []any
	for j := range 1 + g.IntN(3) {
		set := object{"name": pick(g, "main", "worker", strings.Repeat("s", 60)) + fmt.Sprint(j), "count": pick(g, 1, 2, 7, 1000, 2147483647), "template": object{"spec": g.podSpec()}}
		if g.one(8) {
			set["minCount"] = 1
		}
		sets = append(sets, set)
	}
	spec := object{"queueName": queue, "podSets": sets, "priority": pick(g, 0, 5, -5, 2147483647)}
	if g.one(8) {
		spec["active"] = false
	}
	if g.one(8) {
		spec["maximumExecutionTimeSeconds"] = pick(g, 1, 2147483647)
	}
	g.add(kueueVersion, "Workload", ns, g.name("bare", i), object{"spec": spec})
}

// vanish deletes some of what was added, in any order, and Workloads of jobs by the
// name of the job.
func (g *generator) vanish() {
	if g.one(2) {
		return
	}
	for range 1 + g.IntN(4) {
		o := pick(g, g.Apply...)
		meta := o["metadata"].(object)
		v := vanishing{APIVersion: o["apiVersion"].(string), Kind: o["kind"].(string), Name: meta["name"].(string)}
		v.Namespace, _ = meta["namespace"].(string)
		if v.Kind == "Job" && g.one(2) {
			v.APIVersion, v.Kind = kueueVersion, "Workload"
		}
		g.Vanish = append(g.Vanish, v)
	}
}
