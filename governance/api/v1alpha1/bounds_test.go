package v1alpha1_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"sigs.k8s.io/yaml"
)

// The CRDs have the bounds that forms and imports check.
func TestBoundsEqualSchema(t *testing.T) {
	const properties = "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties."
	for _, tc := range []struct {
		crd, path string
		want      int64
	}{
		{"computeallocations", "displayName.maxLength", v1alpha1.MaxDisplayName},
		{"computeallocations", "description.maxLength", v1alpha1.MaxDescription},
		{"computeallocations", "members.maxItems", v1alpha1.MaxMembers},
		{"computeallocations", "members.items.properties.name.maxLength", v1alpha1.MaxMemberName},
		{"computeallocations", "fairShareWeight.minimum", 0},
		{"computeallocations", "fairShareWeight.maximum", v1alpha1.MaxWeight},
		{"computeallocations", "quota.maxItems", v1alpha1.MaxQuotaRows},
		{"computeallocations", "quota.items.properties.instances.maximum", v1alpha1.MaxAmount},
		{"computeallocations", "quota.items.properties.accelerators.maximum", v1alpha1.MaxAmount},
		{"computeallocations", "quota.items.properties.partition.properties.count.maximum", v1alpha1.MaxAmount},
		{"computeallocations", "sharing.properties.borrowLimitPercent.minimum", 0},
		{"computeallocations", "sharing.properties.borrowLimitPercent.maximum", v1alpha1.MaxBorrowLimitPercent},
		{"computeallocations", "sharing.properties.borrowLimits.maxItems", v1alpha1.MaxQuotaRows},
		{"computeallocations", "quota.items.properties.resources.maxItems", v1alpha1.MaxRowResources},
		{"departments", "displayName.maxLength", v1alpha1.MaxDisplayName},
		{"departments", "description.maxLength", v1alpha1.MaxDescription},
		{"departments", "members.maxItems", v1alpha1.MaxDepartmentMembers},
		{"departments", "members.items.properties.name.maxLength", v1alpha1.MaxMemberName},
		{"departments", "fairShareWeight.maximum", v1alpha1.MaxWeight},
		{"departments", "quota.maxItems", v1alpha1.MaxQuotaRows},
		{"departments", "windows.maxItems", v1alpha1.MaxWindows},
		{"clusterpolicies", "priorityClasses.maxItems", v1alpha1.MaxPriorityClasses},
		{"clusterpolicies", "priorityClasses.items.properties.name.maxLength", v1alpha1.MaxClassName},
		{"clusterpolicies", "priorityClasses.items.properties.description.maxLength", v1alpha1.MaxDescription},
		{"clusterpolicies", "priorityClasses.items.properties.weight.minimum", 0},
		{"clusterpolicies", "priorityClasses.items.properties.weight.maximum", v1alpha1.MaxWeight},
		{"clusterpolicies", "priorityClasses.items.properties.defaultTimeLimitSeconds.minimum", 1},
		{"clusterpolicies", "priorityClasses.items.properties.defaultTimeLimitSeconds.maximum", v1alpha1.MaxTimeLimitSeconds},
		{"clusterpolicies", "priorityClasses.items.properties.maximumTimeLimitSeconds.minimum", 1},
		{"clusterpolicies", "priorityClasses.items.properties.maximumTimeLimitSeconds.maximum", v1alpha1.MaxTimeLimitSeconds},
		{"computeallocations", "shares.maxItems", v1alpha1.MaxShares},
		{"computeallocations", "shares.items.properties.name.maxLength", v1alpha1.MaxShareName},
		{"computeallocations", "shares.items.properties.weight.maximum", v1alpha1.MaxShareWeight},
		{"computeallocations", "shares.items.properties.members.maxItems", v1alpha1.MaxShareMembers},
		{"clusterpolicies", "admissionFairSharing.properties.resourceWeights.additionalProperties.maximum", v1alpha1.MaxResourceWeight},
		{"clusterpolicies", "pools.maxItems", v1alpha1.MaxPools},
		{"clusterpolicies", "resources.maxItems", v1alpha1.MaxListedResources},
		{"clusterpolicies", "resources.items.properties.label.maxLength", v1alpha1.MaxResourceLabel},
		{"clusterpolicies", "overAllocationLimits.maxItems", v1alpha1.MaxPools},
		{"clusterpolicies", "overAllocationLimits.items.properties.percent.maximum", v1alpha1.MaxOverPercent},
		{"clusterpolicies", "prices.properties.hourly.maxItems", v1alpha1.MaxPrices},
		{"clusterpolicies", "alerts.properties.rules.maxItems", v1alpha1.MaxAlertRules},
		{"clusterpolicies", "alerts.properties.receivers.maxItems", v1alpha1.MaxAlertReceivers},
		{"clusterpolicies", "pools.items.properties.name.maxLength", v1alpha1.MaxPoolName},
		{"clusterpolicies", "gangScheduling.properties.requeuing.properties.backoffBaseSeconds.default", v1alpha1.DefaultBackoffBaseSeconds},
		{"clusterpolicies", "gangScheduling.properties.requeuing.properties.backoffMaxSeconds.default", v1alpha1.DefaultBackoffMaxSeconds},
	} {
		t.Run(tc.crd+"."+tc.path, func(t *testing.T) {
			got, ok := lookup(read(t, tc.crd), properties+tc.path).(float64)
			if !ok || int64(got) != tc.want {
				t.Errorf("the schema has %v (found: %t), want %d", got, ok, tc.want)
			}
		})
	}
}

// Names are bounded by CEL rules, which have the pattern and the length as text.
func TestNamePatternEqualsSchema(t *testing.T) {
	for crd, wants := range map[string][]string{
		"computeallocations": {"self.metadata.name.size() <= " + strconv.Itoa(v1alpha1.MaxTeamName) + " &&", "self.metadata.name.matches('" + v1alpha1.NamePattern + "')", "self.matches('" + v1alpha1.NamePattern + "')"},
		"clusterpolicies":    {"self.matches('" + v1alpha1.NamePattern + "')"},
	} {
		text, err := os.ReadFile("../../../deploy/crds/kuota.dev_" + crd + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.Join(strings.Fields(string(text)), " ") // YAML folds long lines
		for _, want := range wants {
			if !strings.Contains(strings.ReplaceAll(joined, "''", "'"), want) {
				t.Errorf("%s does not contain the rule %s", crd, want)
			}
		}
	}
}

func read(t *testing.T, crd string) any {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/crds/kuota.dev_" + crd + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// lookup returns the value at a dotted path; a number is the index of a list.
func lookup(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
