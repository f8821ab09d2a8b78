package imports_test

import (
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports"
)

// all returns all problems of a result as one text.
func all(r imports.Result) string {
	problems := r.Problems
	for _, o := range r.Objects {
		problems = append(problems, o.Problems...)
	}
	return governance.JoinFieldErrors(problems)
}

func quotaOf(config string) string {
	return `{"ComputeQuotaConfig": {` + config + `}, "ComputeQuotaTarget": {"TeamName": "vision"}}`
}

func rows(row string) string { return quotaOf(`"ComputeQuotaResources": [` + row + `]`) }

func policyOf(config string) string { return `{"SchedulerConfig": {` + config + `}}` }

func own(spec string) string {
	return "apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: vision}\nspec: {" + spec + "}\n"
}

func repeated(n int, item func(i int) string) string {
	var items []string
	for i := range n {
		items = append(items, item(i))
	}
	return strings.Join(items, ",")
}

// A part that is not imported is reported with its path, and the rest is imported.
func TestReportsWhatIsNotImported(t *testing.T) {
	const good = `{"InstanceType": "ml.g5.xlarge", "Count": 1}`
	for name, tc := range map[string]struct {
		text    string
		objects int
		want    []string // problems
		yaml    []string // in the imported objects
	}{
		"fields without equivalent are one problem": {
			text:    `{"Name": "n", "Status": "Created", "ComputeQuotaVersion": 3, "Tags": [{"Key": "a"}], "CreatedBy": {}, "ComputeQuotaTarget": {"TeamName": "vision"}}`,
			objects: 1, want: []string{"ComputeQuotaVersion, CreatedBy, Status, Tags have no equivalent here and stay with AWS"},
		},
		"unknown fields by their names": {
			text: `{"Nmae": 1, "name": 2, "ComputeQuotaTarget": {"TeamName": "vision", "Colour": "red"}}`, objects: 1,
			want: []string{`unknown fields "Nmae", "name" (did you mean Name); ignored`, `ComputeQuotaTarget: unknown field "Colour"`},
		},
		"wrong types": {
			text: `{"Name": 5, "Description": ["x"], "ComputeQuotaConfig": "none", "ComputeQuotaTarget": {"TeamName": "vision", "FairShareWeight": "ten"}}`, objects: 1,
			want: []string{"Name: is a number, expected text", "Description: is a list, expected text", "ComputeQuotaConfig: is text, expected an object", "FairShareWeight: is text, expected a number"},
		},
		"numbers out of range": {
			text: rows(`{"InstanceType": "a", "Count": -1}, {"InstanceType": "b", "VCpu": 10000001}, {"InstanceType": "c", "MemoryInGiB": -0.5, "VCpu": 1}, {"InstanceType": "d", "Accelerators": 1.5}, {"InstanceType": "e", "Accelerators": 99999999999999999999}, ` + good), objects: 1,
			want: []string{"ComputeQuotaResources[0].Count: must be a whole number from 0 to 10,000,000", "[0]: a row needs at least one amount above 0", "[1].VCpu: must be a number from 0", "[2].MemoryInGiB: must be a number", `[3].Accelerators: "1.5" is not a valid whole number`, `[4].Accelerators: "99999999999999999999" is not a valid whole number`},
			yaml: []string{"ml.g5.xlarge", "instanceType: c"},
		},
		"weights and percentages": {
			text: `{"ComputeQuotaConfig": {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 10001}}, "ComputeQuotaTarget": {"TeamName": "vision", "FairShareWeight": 101}}`, objects: 1,
			want: []string{"BorrowLimit: must be a whole number from 0 to 10,000; ignored", "FairShareWeight: must be a whole number from 0 to 100"},
		},
		"invalid enum values": {
			text: `{"ActivationState": "Paused", "ComputeQuotaConfig": {"PreemptTeamTasks": "Always", "ResourceSharingConfig": {"Strategy": "Give"}}, "ComputeQuotaTarget": {"TeamName": "vision"}}`, objects: 1,
			want: []string{`ActivationState: is "Paused"; it must be Enabled or Disabled`, `PreemptTeamTasks: is "Always"; it must be LowerPriority or Never`, `Strategy: is "Give"; it must be LendAndBorrow, Lend or DontLend`},
		},
		"an invalid team name": {text: `{"ComputeQuotaTarget": {"TeamName": "Vision Team"}}`, objects: 1, want: []string{"ComputeQuotaTarget.TeamName: use lower-case letters"}},
		"a reserved team name": {text: `{"ComputeQuotaTarget": {"TeamName": "new"}}`, objects: 1, want: []string{`TeamName: "new" is reserved`}},
		"a long team name":     {text: `{"ComputeQuotaTarget": {"TeamName": "` + strings.Repeat("a", 41) + `"}}`, objects: 1, want: []string{"TeamName: has 41 characters"}},
		"no team":              {text: `{"ComputeQuotaConfig": {}}`, objects: 1, want: []string{"TeamName: is missing"}},
		"sixteen rows": {
			text: rows(repeated(16, func(i int) string { return fmt.Sprintf(`{"InstanceType": "t%d", "Count": 1}`, i) })), objects: 1,
			want: []string{"ComputeQuotaResources: has 16 entries; at most 15 are possible"}, yaml: []string{"t14"},
		},
		"a type twice": {text: rows(good + "," + good), objects: 1, want: []string{"[1]: the same instance type or pool is in two rows"}},
		"instances beside single resources": {
			text: rows(`{"InstanceType": "a", "Count": 1, "VCpu": 2, "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}}, {"InstanceType": "b", "Count": 0, "VCpu": 2}`), objects: 1,
			want: []string{"[0].Count: set either whole instances or single resources", "[1].Count: set either"},
		},
		"accelerators beside parts of them": {
			text: rows(`{"InstanceType": "a", "Accelerators": 1, "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}}, {"InstanceType": "b", "Accelerators": 0, "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}}`), objects: 1,
			want: []string{"[0].AcceleratorPartition: a row has either whole accelerators or a partition", "[1]: a row needs at least one amount above 0"},
		},
		"invalid partitions": {
			text: rows(good + `,{"InstanceType": "a", "AcceleratorPartition": {"Type": "half", "Count": 1}}, {"InstanceType": "b", "AcceleratorPartition": {"Type": "mig-1g.5gb"}}`), objects: 1,
			want: []string{"[1].AcceleratorPartition.Type: a partition profile looks like mig-1g.5gb", "[2].AcceleratorPartition.Count: is missing"},
		},
		"borrow limits without borrowing": {
			text: quotaOf(`"ResourceSharingConfig": {"Strategy": "DontLend", "BorrowLimit": 50, "AbsoluteBorrowLimits": [` + good + `]}`), objects: 1,
			want: []string{"BorrowLimit: a borrow limit needs the strategy", "AbsoluteBorrowLimits: borrow limits need the strategy"}, yaml: []string{"strategy: DontLend"},
		},
		"fractions to the thousandth and the MiB": {
			text: rows(`{"InstanceType": "a", "VCpu": 1.5, "MemoryInGiB": 0.5}, {"InstanceType": "b", "VCpu": 0.30000000000000004, "MemoryInGiB": 1.3}, {"InstanceType": "c", "VCpu": 4.8e1}`), objects: 1,
			want: []string{`[1].VCpu: "0.30000000000000004" is finer than a thousandth of a vCPU; rounded down`, `[1].MemoryInGiB: "1.3" is finer than a MiB; rounded down`},
			yaml: []string{"vCPU: 1500m", "memory: 512Mi", "vCPU: 300m", "memory: 1331Mi", `vCPU: "48"`},
		},
		"a disabled quota is held":  {text: `{"ActivationState": "Disabled", "ComputeQuotaTarget": {"TeamName": "vision"}}`, objects: 1, yaml: []string{"activation: Hold"}},
		"a deleted quota":           {text: `{"Status": "Deleted", "ComputeQuotaTarget": {"TeamName": "vision"}}`, want: []string{"Status: is Deleted: AWS deleted it"}},
		"a deleted policy":          {text: `{"Status": "Deleting", "SchedulerConfig": {}}`, want: []string{"Status: is Deleting: AWS deleted it"}},
		"a summary of a policy":     {text: `{"ClusterSchedulerConfigSummaries": [{"ClusterSchedulerConfigId": "x", "Name": "p"}]}`, want: []string{"SchedulerConfig: is missing"}},
		"the configuration alone":   {text: `{"ComputeQuotaResources": [` + good + `]}`, objects: 1, want: []string{"TeamName: is missing"}, yaml: []string{"ml.g5.xlarge"}},
		"a policy's settings alone": {text: `{"FairShare": "Disabled", "IdleResourceSharing": "Enabled"}`, objects: 1, yaml: []string{"strategy: FirstComeFirstServe", "shareUnallocated: true", "taskPrioritization: FirstComeFirstServe"}},
		"invalid priority classes": {
			text: policyOf(`"PriorityClasses": [{"Name": "Big", "Weight": 1}, {"Name": "a"}, {"Name": "b", "Weight": 101}, {"Name": "c", "Weight": 1}, {"Name": "c-priority", "Weight": 2}, 7], "FairShare": "Off", "IdleResourceSharing": 1`), objects: 1,
			want: []string{"PriorityClasses[0].name: a priority class name has lower-case letters", "[1].weight: is missing", "[2].weight: must be a whole number from 0 to 100", "[4]: two priority classes would be the same object", "[5]: is a number, expected an object", `FairShare: is "Off"`, "IdleResourceSharing: is a number, expected text"},
			yaml: []string{"name: c", "taskPrioritization: TaskRanking"},
		},
		"eleven classes": {
			text: policyOf(`"PriorityClasses": [` + repeated(11, func(i int) string { return fmt.Sprintf(`{"Name": "c%d", "Weight": 1}`, i) }) + `]`), objects: 1,
			want: []string{"PriorityClasses: has 11 entries; at most 10"},
		},
		"a list with invalid objects": {
			text: `[{"ComputeQuotaTarget": {"TeamName": "a"}}, 5, {"ComputeQuotaTarget": {"TeamName": "a"}}, {"SchedulerConfig": {}}, {"SchedulerConfig": {}}, {"Foo": 1}, {}, {"ComputeQuotaTarget": {"TeamName": "b", "X": 1}}]`, objects: 3,
			want: []string{"object 2: it is not an object", "object 3: is a second allocation of team a", "object 5: is a second cluster policy", `begins with "Foo"`, "it is empty", `object 8: ComputeQuotaTarget: unknown field "X"`},
		},
		"a list response": {
			text: `{"ComputeQuotaSummaries": [{"ComputeQuotaTarget": {"TeamName": "a"}}, {"ComputeQuotaTarget": {"TeamName": "b"}, "X": 1}], "NextToken": "t", "Y": 1}`, objects: 2,
			want: []string{"NextToken: the list has more pages", `unknown field "Y"`, `ComputeQuotaSummaries[1]: unknown field "X"`},
		},
		"several JSON values":           {text: `{"SchedulerConfig": {}} {"ComputeQuotaTarget": {"TeamName": "a"}}`, objects: 2},
		"a truncated list":              {text: "[{\"ComputeQuotaTarget\": {\"TeamName\": \"a\"}},\n{\"ComputeQuotaTarget\": {\"Te", objects: 1, want: []string{"line 2: not valid JSON from here: unexpected end. 1 object before it was imported"}},
		"a truncated object":            {text: `{"ComputeQuotaTarget": {"TeamName": "a"}`, want: []string{"not valid JSON from here", "Nothing was imported"}},
		"JSON with comments and commas": {text: "{\n# ours\n\"ComputeQuotaTarget\": {\"TeamName\": \"a\",},\n}", objects: 1},
		"a name that stands twice":      {text: `{"Name": "a", "Name": "b", "ComputeQuotaTarget": {"TeamName": "vision"}}`, objects: 1, want: []string{`"Name" is listed twice`}, yaml: []string{"displayName: b"}},
		"a display name of two lines":   {text: `{"Name": "a\nb", "ComputeQuotaTarget": {"TeamName": "vision"}}`, objects: 1, want: []string{"Name: a display name has no line breaks"}},
		"a long description":            {text: `{"Description": "` + strings.Repeat("é", 1025) + `", "ComputeQuotaTarget": {"TeamName": "vision"}}`, objects: 1, want: []string{"Description: has more than 1,024 characters"}},
		"nothing":                       {text: " \n", want: []string{"it is empty"}},
		"words":                         {text: "hello", want: []string{"it is not an object"}},
		"bytes":                         {text: "\xff\xfe{}", want: []string{"not UTF-8 text"}},
		"more than a mebibyte":          {text: strings.Repeat(" ", 1<<20) + "{}", want: []string{"longer than 1 MiB"}},
		"nested without end":            {text: strings.Repeat(`{"a":`, 5000), want: []string{"nested too deeply"}},
		"lists without end":             {text: strings.Repeat(`[`, 5000), want: []string{"nested too deeply"}},
		"a hundred thousand numbers":    {text: `{"FairShare": [` + strings.Repeat("1,", 100_000) + `1]}`, want: []string{"has too many values"}},
		"many objects":                  {text: `[` + repeated(600, func(i int) string { return fmt.Sprintf(`{"ComputeQuotaTarget": {"TeamName": "t%d"}}`, i) }) + `]`, objects: 500, want: []string{"object 501: was not imported, nor the objects after it"}},
		"many unknown fields":           {text: `{"FairShare": "Enabled",` + repeated(1000, func(i int) string { return fmt.Sprintf(`"f%d": 1`, i) }) + `}`, objects: 1, want: []string{"990 more; ignored"}},
		"AWS's own YAML":                {text: "ComputeQuotaTarget:\n  TeamName: vision\n  FairShareWeight: 10\nCreationTime: 2025-07-24T11:12:12-07:00\n", objects: 1, want: []string{"CreationTime has no equivalent"}, yaml: []string{"fairShareWeight: 10"}},

		"two commands": {
			text: "$ aws sagemaker create-compute-quota --region us-west-2 --compute-quota-target TeamName=123,X=[a,b] --compute-quota-config file://x.json\naws sagemaker create-cluster-scheduler-config --scheduler-config 'FairShare=' --name", objects: 2,
			want: []string{`argument "--region" was ignored`, `ComputeQuotaTarget: unknown field "X"`, "ComputeQuotaConfig: refers to a file", "Name: --name has no value"}, yaml: []string{`name: "123"`},
		},
		"invalid shorthand":        {text: "--compute-quota-config 'A=[{B=1}' --compute-quota-target TeamName=vision", objects: 1, want: []string{"ComputeQuotaConfig: not valid shorthand syntax of the AWS CLI"}},
		"a missing quotation mark": {text: `--name "a`, want: []string{"a quotation mark is missing"}},
		"shorthand without end":    {text: "--compute-quota-config " + strings.Repeat("a=[", 100), want: []string{"not valid shorthand syntax of the AWS CLI", "it is empty"}},

		"an unknown field of ours":  {text: own("colour: red, fairShareWeight: 3"), objects: 1, want: []string{`spec: unknown field "colour"`}, yaml: []string{"fairShareWeight: 3"}},
		"invalid amounts":           {text: own("quota: [{instanceType: a, memory: lots}, {instanceType: b, vCPU: 1e99999999}, {instanceType: c, vCPU: 1Ki}, {instanceType: d, memory: 9999999.5Gi}, {instanceType: e, memory: -1, vCPU: 1}, {pool: h, accelerators: 1}]"), objects: 1, want: []string{"spec.quota[0].memory: must be a quantity", "spec.quota[1].vCPU: must be a quantity", "spec.quota[2].vCPU: vCPU is counted in plain numbers", "spec.quota[3].memory: must be", "spec.quota[4].memory: memory must be"}, yaml: []string{"pool: h", "instanceType: e"}},
		"invalid members":           {text: own("members: [{kind: Robot, name: r}, {kind: User, name: 'system:admin'}, {kind: User}, {kind: Group, name: g}]"), objects: 1, want: []string{"members[0].kind: is \"Robot\"; it must be User or Group", "members[1].name: names that start with system:", "members[2].name: is empty"}, yaml: []string{"name: g"}},
		"a namespace of Kubernetes": {text: own("namespace: kube-system"), objects: 1, want: []string{"spec.namespace: that namespace is reserved"}},
		"a ceiling without limit":   {text: own("namespaceCeiling: true, sharing: {unlimited: true}"), objects: 1, want: []string{"spec.namespaceCeiling: a namespace ceiling needs a borrow limit"}},
		"fields of the API server":  {text: own("") + "status: {}\n", objects: 1, want: []string{"only the name and the spec were imported, not status"}},
		"another version of ours":   {text: "apiVersion: kuota.dev/v2\nkind: ComputeAllocation\n", want: []string{`apiVersion: is "kuota.dev/v2"; Kuota reads kuota.dev/v1alpha1`}},
		"another kind":              {text: "apiVersion: v1\nkind: Pod\n", want: []string{`apiVersion: is "v1"`}},
		"a policy of another name":  {text: "apiVersion: kuota.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: mine}\nspec: {pools: [{name: a, match: {}}, {name: b, match: {accelerator: H100}}], gangScheduling: {timeout: 0s, recoveryTimeout: soon}}\n", objects: 1, want: []string{`metadata.name: is "mine"`, "pools[0].match: a pool matches by exactly one", "recoveryTimeout: must be a duration"}, yaml: []string{"name: default", "name: b"}},
		"what kubectl lists":        {text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: kuota.dev/v1alpha1, kind: ComputeAllocation, metadata: {name: a}, spec: {}}\n- {apiVersion: v1, kind: Pod}\n", objects: 1, want: []string{`items[1].apiVersion: is "v1"`}},
		"several documents":         {text: own("") + "---\n---\n" + strings.Replace(own(""), "vision", "language", 1) + "---\n{broken", objects: 2, want: []string{"not valid YAML"}},
		"YAML aliases":              {text: "apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: vision}\nspec:\n  description: &a text\n  displayName: *a\n", objects: 1, want: []string{"spec.displayName: is an alias (*a)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := imports.Read([]byte(tc.text))
			if len(got.Objects) != tc.objects {
				t.Errorf("read %d objects, want %d", len(got.Objects), tc.objects)
			}
			problems := all(got)
			for _, want := range tc.want {
				if !strings.Contains(problems, want) {
					t.Errorf("%q is not reported in: %s", want, problems)
				}
			}
			if tc.want == nil && problems != "" {
				t.Errorf("unexpected problems: %s", problems)
			}
			var texts strings.Builder
			for _, o := range got.Objects {
				texts.WriteString(o.YAML())
			}
			for _, want := range tc.yaml {
				if !strings.Contains(texts.String(), want) {
					t.Errorf("%q is not in:\n%s", want, texts.String())
				}
			}
		})
	}
}
