package quota_test

import (
	"testing"

	"kuota.dev/kuota/governance/quota"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestCohorts(t *testing.T) {
	object := func(name, parent, department string) kueue.Cohort {
		o := kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}}
		if department != "" {
			o.Labels = map[string]string{quota.DepartmentLabel: department}
		}
		return o
	}
	all := quota.NewCohorts([]kueue.Cohort{object("root", "", ""), object("d1", "root", "research"), object("d2", "d1", ""), object("d3", "implicit", ""), object("a", "b", ""), object("b", "a", ""), object("c", "a", "")})
	for name, tc := range map[string]struct {
		wantPath  []string
		wantCycle bool
		wantRoot  string
		wantTitle string
	}{
		"root":     {[]string{"root"}, false, "root", "cohort root"},
		"d1":       {[]string{"d1", "root"}, false, "root", "department research"},
		"d2":       {[]string{"d2", "d1", "root"}, false, "root", "cohort d2"},
		"d3":       {[]string{"d3", "implicit"}, false, "implicit", "cohort d3"},
		"implicit": {[]string{"implicit"}, false, "implicit", "cohort implicit"},
		"a":        {[]string{"a", "b"}, true, "", "cohort a"},
		"c":        {[]string{"c", "a", "b"}, true, "", "cohort c"},
	} {
		path, cycle := all.Path(name)
		if diff := cmp.Diff(tc.wantPath, path); diff != "" || cycle != tc.wantCycle || all.Root(name) != tc.wantRoot || all.Title(name) != tc.wantTitle {
			t.Errorf("%s: got %v, cycle %t, root %q, title %q, want %+v", name, path, cycle, all.Root(name), all.Title(name), tc)
		}
	}
}
