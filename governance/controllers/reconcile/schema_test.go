package reconcile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// The API server rejects an invalid allocation, with a message that names the field or
// the fix.
func TestSchemaRejects(t *testing.T) {
	c := setup(t)
	rows := make([]string, 16)
	for i := range rows {
		rows[i] = fmt.Sprintf("{instanceType: t%d, vCPU: 1}", i)
	}
	row := func(figures string) string { return "quota: [{instanceType: ml.p5.48xlarge, " + figures + "}]" }
	cases := map[string]struct {
		name, spec string
		want       string
	}{
		"an overlong name":                   {strings.Repeat("a", 41), "", "at most 40"},
		"a name with a dot":                  {"a.b", "", "letters, digits and hyphens"},
		"upper case":                         {"Vision", "", "lower-case"},
		"a reserved name":                    {"new", "", "reserved"},
		"a negative number of accelerators":  {"", row("accelerators: -1"), "greater than or equal to 0"},
		"a negative number of vCPU":          {"", row("vCPU: -1"), "from 0 to 10,000,000"},
		"a row of zeros":                     {"", row(`accelerators: 0, vCPU: 0, memory: "0"`), "at least one amount above 0"},
		"an empty row":                       {"", "quota: [{instanceType: ml.p5.48xlarge}]", "at least one amount above 0"},
		"1e400":                              {"", row(`vCPU: "1e400"`), "spec.quota[0].vCPU"},
		"an exponent that costs a minute":    {"", row(`memory: "1e99999999"`), "spec.quota[0].memory"},
		"NaN":                                {"", row("vCPU: NaN"), "spec.quota[0].vCPU"},
		"beyond int64":                       {"", row(`vCPU: "9223372036854775808"`), "spec.quota[0].vCPU"},
		"accelerators beyond int64":          {"", row("accelerators: 9223372036854775808"), "spec.quota[0].accelerators"},
		"half an accelerator":                {"", row("accelerators: 0.5"), "integer"},
		"above the maximum, with a suffix":   {"", row("vCPU: 11M"), "spec.quota[0].vCPU"},
		"binary vCPU":                        {"", row("vCPU: 1Ki"), "not in binary units"},
		"vCPU finer than a thousandth":       {"", row(`vCPU: "0.0005"`), "spec.quota[0].vCPU"},
		"instances with vCPU":                {"", row("instances: 1, vCPU: 2"), "not both"},
		"a partition with accelerators":      {"", row("accelerators: 1, partition: {profile: mig-1g.5gb, count: 1}"), "partition"},
		"a row of spelled-out zeros":         {"", row(`vCPU: "0.00", memory: 0Pi`), "at least one amount above 0"},
		"other spellings of zero":            {"", row(`vCPU: "00", memory: "0.0Gi"`), "spec.quota[0].vCPU"},
		"Kueue's own namespace":              {"", "namespace: kueue-system", "is reserved for the cluster"},
		"Kubernetes' own namespace":          {"", "namespace: kube-system", "is reserved for the cluster"},
		"a display name with a bidi control": {"", `displayName: "a\u202eb"`, "direction of writing"},
		"a display name of two lines":        {"", `displayName: "a\rb"`, "line breaks"},
		"neither type nor pool":              {"", "quota: [{vCPU: 1}]", "either an instanceType or a pool"},
		"the same type twice":                {"", "quota: [{instanceType: a, vCPU: 1}, {instanceType: a, instances: 1}]", "two rows"},
		"sixteen rows":                       {"", "quota: [" + strings.Join(rows, ", ") + "]", "at most 15"},
		"a borrow limit of 10001":            {"", "sharing: {borrowLimitPercent: 10001}", "10000"},
		"a limit without borrowing":          {"", "sharing: {strategy: Lend, borrowLimitPercent: 10}", "needs the strategy LendAndBorrow"},
		"a limit and none":                   {"", "sharing: {unlimited: true, borrowLimitPercent: 10}", "either unlimited or"},
		"a ceiling without limit":            {"", "{namespaceCeiling: true, sharing: {unlimited: true}}", "ceiling"},
		"a ceiling that nobody counts":       {"", "ceiling: [{name: license, quantity: 4}]", "Kubernetes counts no others"},
		"a ceiling below 0":                  {"", "ceiling: [{name: pods, quantity: -4}]", "at least 0"},
		"a LocalQueue without a queue":       {"", "localQueueName: jobs", "describe an existing ClusterQueue"},
		"observing nothing":                  {"", "management: Observe", "describe an existing ClusterQueue"},
		"a limit without a cohort":           {"", `{clusterQueueName: theirs, cohortName: "", sharing: {borrowLimitPercent: 5}}`, "without a cohort has no borrow limits"},
		"borrowing without reclaiming":       {"", "preemption: {reclaimWithinCohort: Never}", "needs reclaiming"},
		"an upper-case queue":                {"", "clusterQueueName: Theirs", "lower-case"},
		"a weight of 101":                    {"", "fairShareWeight: 101", "100"},
		"a system group as a member":         {"", "members: [{kind: Group, name: 'system:masters'}]", "system:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Client.Create(t.Context(), allocationOf(t, tc.name, tc.spec), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a rejection with %q", err, tc.want)
			}
		})
	}
	for name, spec := range map[string]string{
		"an empty spec":              "{}",
		"fractions":                  row(`vCPU: "0.5", memory: 1.5Ti`),
		"the maximum":                row("vCPU: 10000000, memory: 10000000Gi, accelerators: 10000000"),
		"milli":                      row("vCPU: 500m"),
		"a million":                  row("vCPU: 1M"), // as Kubernetes writes 1000000
		"the maximum, with a suffix": row("vCPU: 10M"),
		"bytes":                      row("memory: 1073741824"),
		"half a GiB":                 row(`memory: "0.50Gi"`),
		"a partition":                row("partition: {profile: mig-1g.5gb, count: 7}"),
		"absolute limits":            "sharing: {borrowLimits: [{instanceType: ml.p5.48xlarge, accelerators: 8}]}",
	} {
		t.Run("accepts "+name, func(t *testing.T) {
			if err := c.Client.Create(t.Context(), allocationOf(t, "", spec), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the API server stores can be read: one object that cannot be decoded would end
// the watch of all of its kind.
func TestSchemaAcceptsOnlyWhatCanBeRead(t *testing.T) {
	c := setup(t)
	pod := func(container string) string {
		return "{elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1}, template: {spec: {containers: [{name: main, image: a, " + container + "}]}}}"
	}
	requests := func(quantity string) string { return pod("resources: {requests: {memory: " + quantity + "}}") }
	for name, tc := range map[string]struct {
		kind, spec string
		wantError  bool
	}{
		"an exponent that is a fraction":        {"ElasticJob", requests(`"1e1.5"`), true},
		"an exponent without digits before":     {"ElasticJob", requests(`"1e.5"`), true},
		"an exponent beyond int32":              {"ElasticJob", requests(`"1e99999999999999999999"`), true},
		"an exponent that costs a minute":       {"ElasticJob", requests(`"1e99999999"`), true},
		"an exponent":                           {"ElasticJob", requests(`"1e3"`), false},
		"a negative exponent":                   {"ElasticJob", requests(`"1E-3"`), false},
		"a large number":                        {"ElasticJob", requests(`99999999999999999999`), true},
		"a quantity of words":                   {"ElasticJob", requests(`many`), true},
		"a fraction":                            {"ElasticJob", requests(`0.5`), true},
		"a port beyond int32":                   {"ElasticJob", pod("livenessProbe: {httpGet: {port: 9999999999}}"), true},
		"a port below int32":                    {"ElasticJob", pod("livenessProbe: {httpGet: {port: -9999999999}}"), true},
		"a port":                                {"ElasticJob", pod("livenessProbe: {httpGet: {port: 80}}"), false},
		"an int32 that is larger":               {"ElasticJob", pod("ports: [{containerPort: 9999999999}]"), true},
		"an int32 that is smaller":              {"ElasticJob", pod("ports: [{containerPort: -9999999999}]"), true},
		"an int64 that is larger":               {"ElasticJob", pod("securityContext: {runAsUser: 99999999999999999999}"), true},
		"gang scheduling with a wrong time":     {"ClusterPolicy", "{gangScheduling: {enabled: true, timeout: soon}}", true},
		"gang scheduling with a negative time":  {"ClusterPolicy", "{gangScheduling: {enabled: true, timeout: -5m}}", true},
		"gang scheduling with an endless time":  {"ClusterPolicy", "{gangScheduling: {enabled: true, timeout: 9999999h}}", true},
		"gang scheduling without recovery":      {"ClusterPolicy", "{gangScheduling: {enabled: true, recoveryTimeout: 0s}}", false},
		"gang scheduling with a wrong recovery": {"ClusterPolicy", "{gangScheduling: {enabled: true, recoveryTimeout: 1d}}", true},
		"a wrong half-life":                     {"ClusterPolicy", "{admissionFairSharing: {usageHalfLifeTime: 1d}}", true},
		"a wrong interval":                      {"ClusterPolicy", "{admissionFairSharing: {usageSamplingInterval: often}}", true},
		"a half-life":                           {"ClusterPolicy", "{admissionFairSharing: {usageHalfLifeTime: 0s}}", false},
		"a backoff beyond int32":                {"ClusterPolicy", "{gangScheduling: {enabled: true, requeuing: {backoffMaxSeconds: 9999999999}}}", true},
		"a quantity of a Workload":              {"Workload", "{podSets: [{name: main, count: 1, template: {spec: {containers: [{name: a, image: a, resources: {requests: {memory: \"1e1.5\"}}}]}}}]}", true},
		"a Workload":                            {"Workload", "{podSets: [{name: main, count: 1, template: {spec: {containers: [{name: a, image: a, resources: {requests: {memory: \"1e1\"}}}]}}}]}", false},
		"a quantity of a queue":                 {"ClusterQueue", "{resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, resources: [{name: cpu, nominalQuota: \"1e1.5\"}]}]}]}", true},
		"a quantity of a Cohort":                {"Cohort", "{resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, resources: [{name: cpu, nominalQuota: \"1e1.5\"}]}]}]}", true},
		"a weight beyond int32":                 {"ClusterPolicy", "{priorityClasses: [{name: a, weight: 9999999999}]}", true},
	} {
		t.Run(name, func(t *testing.T) {
			object := allocationOf(t, "default", tc.spec)
			object.SetKind(tc.kind)
			switch tc.kind {
			case "Workload", "ClusterQueue", "Cohort":
				object.SetAPIVersion("kueue.x-k8s.io/v1beta2")
			}
			if tc.kind == "ElasticJob" || tc.kind == "Workload" {
				object.SetNamespace("default")
				object.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "a"})
			}
			err := c.Client.Create(t.Context(), object, client.DryRunAll)
			if (err != nil) != tc.wantError {
				t.Errorf("got error %v, want one: %t", err, tc.wantError)
			}
			if err != nil {
				return
			}
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, map[string]any{
				"ElasticJob": &v1alpha1.ElasticJob{}, "ClusterPolicy": &v1alpha1.ClusterPolicy{}, "Workload": &kueue.Workload{}, "ClusterQueue": &kueue.ClusterQueue{}, "Cohort": &kueue.Cohort{},
			}[tc.kind]); err != nil {
				t.Errorf("the API server stores what cannot be read: %v", err)
			}
		})
	}
}

// allocationOf returns an allocation with a spec from YAML, which can have values that
// the Go types cannot encode.
func allocationOf(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	if name == "" {
		name = "schema"
	}
	if spec == "" {
		spec = "{}"
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kuota.dev/v1alpha1")
	object.SetKind("ComputeAllocation")
	object.SetName(name)
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = parsed
	return object
}
