package handlerstest

import (
	"context"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/departments"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DepartmentsBackend is departments in memory. The teams are those of a Backend.
type DepartmentsBackend struct {
	List         []v1alpha1.Department
	Governed     *access.Governed // nil for all
	ReviewResult departments.Review
	WriteError   error
	Saved        []v1alpha1.Department
	Deleted      []string

	of *Backend
}

// Department returns a department with H100 accelerators of its own.
func Department(name, parent string, accelerators int64) v1alpha1.Department {
	return v1alpha1.Department{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7", Generation: 1},
		Spec: v1alpha1.DepartmentSpec{
			Parent: parent, Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Quantities: v1alpha1.Quantities{Accelerators: &accelerators}}},
		},
	}
}

func (d *DepartmentsBackend) State(context.Context, governance.User) (departments.State, error) {
	state := d.of.state()
	governed := access.Governed{All: !d.of.Reader}
	if d.Governed != nil {
		governed = *d.Governed
	}
	s := departments.NewState(d.List, cluster.Pointers(d.of.Allocations), state.Types, governed)
	s.Policy = state.Policy
	return s, nil
}

func (d *DepartmentsBackend) Again(ctx context.Context, _ departments.State) (departments.State, error) {
	return d.State(ctx, governance.User{})
}

func (d *DepartmentsBackend) TeamsBelow(ctx context.Context, department string) ([]string, error) {
	state, err := d.State(ctx, governance.User{})
	return state.Tree.TeamsBelow(department), err
}

func (d *DepartmentsBackend) Figures(_ context.Context, state departments.State, seen func(string) bool) (map[string]departments.Figures, error) {
	return departments.FiguresOf(state, &d.of.CapacityBackend.Snapshot, seen), nil
}

func (d *DepartmentsBackend) Review(_ context.Context, _ governance.User, state departments.State, of *v1alpha1.Department) (departments.Review, error) {
	if err := d.refused(state, of); err != nil {
		return departments.Review{}, err
	}
	return d.ReviewResult, nil
}

// refused returns what the API server or the service answers to a save.
func (d *DepartmentsBackend) refused(state departments.State, of *v1alpha1.Department) error {
	if d.WriteError != nil {
		return d.WriteError
	}
	if of.ResourceVersion == "" && state.Find(of.Name) != nil {
		return &governance.Error{Kind: governance.Invalid, Message: "The name is in use.", Fields: []governance.FieldError{{Path: "metadata.name", Message: "department " + of.Name + " exists already; choose another name"}}}
	}
	if saved := state.Find(of.Name); saved != nil && of.ResourceVersion != "" && saved.ResourceVersion != of.ResourceVersion {
		return &governance.Error{Kind: governance.Conflict, Message: "Another user changed it in between."}
	}
	if wrong := state.Check(of); len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Message: "Some values are not valid.", Fields: wrong}
	}
	return nil
}

func (d *DepartmentsBackend) Create(_ context.Context, _ governance.User, state departments.State, of *v1alpha1.Department, _ string) error {
	if err := d.refused(state, of); err != nil {
		return err
	}
	d.Saved = append(d.Saved, *of.DeepCopy())
	d.List = append(d.List, *of.DeepCopy())
	return nil
}

func (d *DepartmentsBackend) Update(_ context.Context, _ governance.User, state departments.State, of *v1alpha1.Department) error {
	if err := d.refused(state, of); err != nil {
		return err
	}
	d.Saved = append(d.Saved, *of.DeepCopy())
	i := slices.IndexFunc(d.List, func(one v1alpha1.Department) bool { return one.Name == of.Name })
	version, _ := strconv.Atoi(d.List[i].ResourceVersion)
	d.List[i].Spec, d.List[i].ResourceVersion = of.Spec, strconv.Itoa(version+1)
	d.List[i].Generation++
	return nil
}

func (d *DepartmentsBackend) Delete(_ context.Context, _ governance.User, state departments.State, name, _, _ string) error {
	if left := state.NotEmpty(name); left != "" {
		return &governance.Error{Kind: governance.Conflict, Message: left + " in it."}
	}
	d.Deleted = append(d.Deleted, name)
	return nil
}
