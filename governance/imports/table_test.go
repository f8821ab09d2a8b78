package imports_test

import (
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"
)

// A table as spreadsheets copy it has a team a line.
func TestTable(t *testing.T) {
	for name, delimiter := range map[string]string{"a spreadsheet": "\t", "CSV": ",", "CSV of Europe": ";"} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll("\ufeffTeam|Members|Department|Weight|h100|ml.c5.4xlarge instances|Borrow limit\r\nvision|\"vision-team, user:ada\"|research|10|16||50%\r\n\r\nspeech|speech-team||0|8|2|\r\n", "|", delimiter)
			r := imports.Read([]byte(text))
			if len(r.Objects) != 2 || len(r.Problems) != 0 || len(r.Objects[0].Problems)+len(r.Objects[1].Problems) != 0 {
				t.Fatalf("got %d teams, problems %v, %+v", len(r.Objects), r.Problems, r.Objects)
			}
			vision, speech := manifest.AllocationYAML(r.Objects[0].Allocation), manifest.AllocationYAML(r.Objects[1].Allocation)
			for _, want := range []string{"name: vision\n", "kind: Group\n    name: vision-team", "kind: User\n    name: ada", "department: research\n", "fairShareWeight: 10", "accelerators: 16\n    pool: h100", "borrowLimitPercent: 50"} {
				if !strings.Contains(vision, want) {
					t.Errorf("vision lacks %q:\n%s", want, vision)
				}
			}
			if !strings.Contains(speech, "instanceType: ml.c5.4xlarge\n    instances: 2") || strings.Contains(vision, "ml.c5") {
				t.Errorf("speech is\n%s", speech)
			}
		})
	}
}

// A row changes what its columns have, and keeps the rest of a team that exists.
func TestTableKeepsTheRest(t *testing.T) {
	r := imports.Read([]byte("team\th100\tl4\nvision\t8\t0\n"))
	two, three, four := int64(2), int64(3), int64(4)
	spec := v1alpha1.ComputeAllocationSpec{Description: "kept", Quota: []v1alpha1.QuotaRow{
		{Pool: "h100", Quantities: v1alpha1.Quantities{Accelerators: &two}}, {Pool: "l4", Quantities: v1alpha1.Quantities{Accelerators: &three}}, {Pool: "a100", Quantities: v1alpha1.Quantities{Accelerators: &four}},
	}}
	r.Objects[0].Overlay(&spec)
	quota := map[string]int64{}
	for _, row := range spec.Quota {
		quota[row.Pool] = *row.Accelerators
	}
	if got := fmt.Sprint(quota); spec.Description != "kept" || got != "map[a100:4 h100:8]" {
		t.Errorf("got %s, %q", got, spec.Description)
	}
}

// What cannot be read is said, and loses no other cell.
func TestTableProblems(t *testing.T) {
	r := imports.Read([]byte("team,weight,h100,\nvision,ten,2.5,x\nvision,1,1\nspeech,1,-1\n\"open\n"))
	var got []string
	for _, o := range r.Objects {
		for _, p := range o.Problems {
			got = append(got, o.Allocation.Name+" "+p.Path+": "+p.Message)
		}
	}
	for _, p := range r.Problems {
		got = append(got, p.Path+": "+p.Message)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"vision weight: is \"ten\"", "vision h100: is \"2.5\"", "vision : has a value and no heading", "speech h100: is \"-1\"", "line 3: is a second allocation of team vision", "cannot be read any further"} {
		if !strings.Contains(all, want) {
			t.Errorf("got\n%s\nwant %q", all, want)
		}
	}
	many := "team\n"
	for i := range 501 {
		many += fmt.Sprintf("t%d\n", i)
	}
	if r := imports.Read([]byte(many)); len(r.Objects) != 500 || len(r.Problems) != 1 {
		t.Errorf("got %d teams and %v", len(r.Objects), r.Problems)
	}
}
