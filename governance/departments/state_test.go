package departments

import (
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// samples has research above vision, with teams speech and sight, and product without any.
func samples(governed access.Governed) State {
	named := func(name, parent string, members ...v1alpha1.DepartmentMember) v1alpha1.Department {
		return v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Spec: v1alpha1.DepartmentSpec{Parent: parent, Members: members}}
	}
	team := func(name, department string) *v1alpha1.ComputeAllocation {
		return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Department: department}, Status: v1alpha1.ComputeAllocationStatus{Namespace: "ns-" + name}}
	}
	return NewState([]v1alpha1.Department{
		named("product", ""),
		named("research", "", v1alpha1.DepartmentMember{Member: v1alpha1.Member{Kind: "Group", Name: "heads"}, Role: v1alpha1.DepartmentAdmin}),
		named("vision", "research", v1alpha1.DepartmentMember{Member: v1alpha1.Member{Kind: "User", Name: "ada"}}),
	}, []*v1alpha1.ComputeAllocation{team("sight", "vision"), team("speech", "research")}, catalog.New(catalog.Input{}), governed)
}

func TestWithin(t *testing.T) {
	for name, tc := range map[string]struct {
		user              governance.User
		scope             access.Scope
		wantSees, wantAll []string
	}{
		"a stranger":                 {user: governance.User{Name: "eve"}},
		"a member of the top":        {user: governance.User{Name: "eve", Groups: []string{"heads"}}, wantSees: []string{"research", "vision"}, wantAll: []string{"research", "vision"}},
		"a member of the bottom":     {user: governance.User{Name: "ada"}, wantSees: []string{"vision"}, wantAll: []string{"research", "vision"}},
		"a member of a team":         {user: governance.User{Name: "eve"}, scope: access.ScopeOf("ns-sight"), wantAll: []string{"research", "vision"}},
		"a member of a team above":   {user: governance.User{Name: "eve"}, scope: access.ScopeOf("ns-speech"), wantAll: []string{"research"}},
		"of a group with that name":  {user: governance.User{Name: "heads"}},
		"of a user with that group":  {user: governance.User{Name: "eve", Groups: []string{"ada"}}},
		"a member of unknown spaces": {user: governance.User{Name: "eve"}, scope: access.ScopeOf("ns-other")},
	} {
		t.Run(name, func(t *testing.T) {
			s := samples(access.Governed{})
			s = s.within(tc.scope.WithDepartments(access.MemberOf(s.Departments, tc.user)...))
			var sees, all []string
			for _, d := range s.Departments {
				all = append(all, d.Name)
				if s.Sees(d.Name) {
					sees = append(sees, d.Name)
				}
			}
			if diff := cmp.Diff([][]string{tc.wantSees, tc.wantAll}, [][]string{sees, all}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	of := func(name, version, parent string) *v1alpha1.Department {
		return &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Spec: v1alpha1.DepartmentSpec{Parent: parent}}
	}
	for name, tc := range map[string]struct {
		governed access.Governed
		of       *v1alpha1.Department
		wantKind governance.Kind
		wantPath string
	}{
		"new, by an admin of the cluster":     {access.Governed{All: true}, of("new-one", "", ""), governance.Internal, ""},
		"new, by an admin of its parent":      {access.GovernedOf("research"), of("audio", "", "research"), governance.Internal, ""},
		"new, beside the department":          {access.GovernedOf("research"), of("audio", "", ""), governance.Invalid, "spec.parent"},
		"new, by another":                     {access.Governed{}, of("audio", "", "research"), governance.Forbidden, ""},
		"changed, by an admin of its parent":  {access.GovernedOf("research", "vision"), of("vision", "1", "research"), governance.Internal, ""},
		"changed, by an admin of itself only": {access.GovernedOf("vision"), of("vision", "1", "research"), governance.Forbidden, ""},
		"moved out of the department":         {access.GovernedOf("research", "vision"), of("vision", "1", ""), governance.Invalid, "spec.parent"},
		"below itself":                        {access.Governed{All: true}, of("research", "1", "vision"), governance.Invalid, "spec.parent"},
		"without a valid name":                {access.Governed{All: true}, of("A", "", ""), governance.Invalid, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := samples(tc.governed).check(tc.of)
			if tc.wantKind == governance.Internal {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			path := ""
			if e, ok := err.(*governance.Error); ok && len(e.Fields) > 0 {
				path = e.Fields[0].Path
			}
			if governance.KindOf(err) != tc.wantKind || path != tc.wantPath {
				t.Errorf("got %v, want kind %v at %q", err, tc.wantKind, tc.wantPath)
			}
		})
	}
}

func TestNotEmpty(t *testing.T) {
	s := samples(access.Governed{All: true})
	for name, want := range map[string]string{"product": "", "vision": "1 team", "research": "1 team and 1 department"} {
		if got := s.NotEmpty(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
