package departments

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Review is what saving a department would do.
type Review struct {
	Pools   []allocations.PoolChange // its quota before and after
	Changes []change.Field           // all values that change, as they were entered
}

// Empty reports whether saving would change nothing.
func (r Review) Empty() bool { return len(r.Changes) == 0 }

// Check returns all errors of a department under a state, with paths from metadata and spec.
// It is pure but for the clock, which windows are checked by.
func (s State) Check(d *v1alpha1.Department) governance.FieldErrors {
	saved := s.saved(d)
	var before client.Object
	if saved != nil {
		before = saved
	}
	spec := &d.Allocation().Spec
	errs := schema.Department.Validate(d, before)
	errs = append(errs, effective.Problems(spec, time.Now())...)
	errs = append(errs, quota.CheckWindows(spec, s.Types)...)
	_, wrong := quota.Resolve(spec, s.Types)
	if errs = append(errs, wrong...); len(errs) > 0 {
		return errs
	}
	return s.Tree.CheckDepartment(d, saved)
}

// saved returns the saved version of a department that is changed; nil for a new one.
func (s State) saved(d *v1alpha1.Department) *v1alpha1.Department {
	if d.ResourceVersion == "" {
		return nil
	}
	return s.Tree.Find(d.Name)
}

// check returns the errors of a department, and whether user may save it.
func (s State) check(d *v1alpha1.Department) error {
	saved := s.saved(d)
	if saved != nil && !s.Governed.Includes(saved.Spec.Parent) || saved == nil && s.Governed.Empty() {
		return access.Forbidden("save department")
	}
	errs := s.Check(d)
	if len(errs) == 0 && !s.Governed.Includes(d.Spec.Parent) {
		errs.Add("spec.parent", "choose a department of which you are an admin")
	}
	if len(errs) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "check department", Message: "Some values are not valid. Correct the marked fields.", Fields: errs}
	}
	return nil
}

// Review returns what saving a department would do under a state that user read, and changes
// nothing. A department without a resourceVersion is new.
func (s *Service) Review(ctx context.Context, user governance.User, state State, d *v1alpha1.Department) (Review, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	if err := state.check(d); err != nil {
		return Review{}, err
	}
	var before, after *v1alpha1.Department
	var err error
	if d.ResourceVersion == "" {
		after, err = s.send(ctx, user, state, d, "", client.DryRunAll)
	} else {
		before, after, err = s.edit(ctx, user, state, d, client.DryRunAll)
	}
	if err != nil {
		return Review{}, err
	}
	return state.review(before, after), nil
}

// review compares two versions of a department; before is nil for a new one.
func (s State) review(before, after *v1alpha1.Department) (r Review) {
	var was quota.Resolved
	var old *v1alpha1.DepartmentSpec
	if before != nil {
		was, _ = quota.EffectiveDepartment(before, s.Types)
		old = &before.Spec
	}
	is, _ := quota.Resolve(&after.Allocation().Spec, s.Types)
	r.Pools = allocations.PoolChanges(was, is)
	r.Changes = describe.DepartmentChanges(old, &after.Spec)
	return r
}

// Create creates a department as user, for the reason in its annotation. request is the ID of
// the form: if the same form created the same department before, Create succeeds.
func (s *Service) Create(ctx context.Context, user governance.User, state State, d *v1alpha1.Department, request string) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	err := state.check(d)
	created := d
	if err == nil {
		created, err = s.send(ctx, user, state, d, request)
	}
	if kind := governance.KindOf(err); err == nil || kind == governance.Forbidden || kind == governance.Unavailable {
		s.Audit.Record(audit.Change{User: user, Action: audit.Create, Object: created, New: created.Spec, Err: err})
	}
	if err == nil {
		s.Cluster.WaitForCache(ctx, created)
	}
	return allocations.TranslateUnreachable(err)
}

// writer returns the client with which user writes a department that state lets them change. Admins
// of departments cannot read departments from the API server: the console reads for them, and the
// API server decides about the write.
func (s *Service) writer(user governance.User, state State) (client.Client, error) {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil || state.Governed.All || state.Governed.Empty() {
		return writer, err
	}
	return cluster.ReadingBy(s.Cluster.Manager.GetAPIReader(), writer), nil
}

// send creates a department, or finds the one that the same form created. It returns its
// argument where it fails.
func (s *Service) send(ctx context.Context, user governance.User, state State, d *v1alpha1.Department, request string, options ...client.CreateOption) (*v1alpha1.Department, error) {
	writer, err := s.writer(user, state)
	if err != nil {
		return d, err
	}
	mark, err := allocations.RequestMark(request, d.Spec)
	if err != nil {
		return d, &governance.Error{Op: "create department", Message: "The department cannot be encoded.", Err: err}
	}
	created := &v1alpha1.Department{Spec: *d.Spec.DeepCopy()}
	created.Name = d.Name
	v1alpha1.SetReason(created, d.Annotations[v1alpha1.AnnotationReason])
	if request != "" {
		if created.Annotations == nil {
			created.Annotations = map[string]string{}
		}
		created.Annotations[allocations.AnnotationRequest] = mark
	}
	err = rejection.Translate("create department", writer.Create(ctx, created, options...))
	if governance.KindOf(err) != governance.Exists {
		if err != nil {
			created = d
		}
		return created, err
	}
	var existing v1alpha1.Department
	if request != "" && writer.Get(ctx, client.ObjectKeyFromObject(d), &existing) == nil && existing.Annotations[allocations.AnnotationRequest] == mark {
		return &existing, nil // the response was lost
	}
	return d, &governance.Error{
		Kind: governance.Invalid, Op: "create department", Message: "The department name is already in use.",
		Fields: []governance.FieldError{{Path: "metadata.name", Message: fmt.Sprintf("department %s exists already; choose another name", d.Name)}},
	}
}

// Update changes the spec of a department as user, over the version at its resourceVersion:
// see allocations.Service.Update.
func (s *Service) Update(ctx context.Context, user governance.User, state State, d *v1alpha1.Department) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	err := state.check(d)
	var before, after *v1alpha1.Department
	if err == nil {
		before, after, err = s.edit(ctx, user, state, d)
	}
	c := audit.Change{User: user, Action: audit.Update, Object: d, New: d.Spec, Err: err}
	if before != nil {
		c.Old, c.Action = before.Spec, audit.OfActivation(before.Spec.Activation, d.Spec.Activation)
	}
	switch kind := governance.KindOf(err); {
	case err == nil && before.Generation != after.Generation:
		c.Object, c.New = after, after.Spec
		s.Audit.Record(c)
		s.Cluster.WaitForCache(ctx, after)
	case err != nil && (kind == governance.Forbidden || kind == governance.Unavailable):
		s.Audit.Record(c)
	}
	return allocations.TranslateUnreachable(err)
}

// edit writes the spec of a department.
func (s *Service) edit(ctx context.Context, user governance.User, state State, d *v1alpha1.Department, options ...client.UpdateOption) (before, after *v1alpha1.Department, err error) {
	writer, err := s.writer(user, state)
	if err != nil {
		return nil, nil, err
	}
	after = &v1alpha1.Department{}
	after.Name = d.Name
	was, err := s.Cluster.UpdateSpec(ctx, writer, after, d.ResourceVersion, func() error {
		if after.DeletionTimestamp != nil {
			return &governance.Error{Kind: governance.Conflict, Op: "update department", Message: fmt.Sprintf("Department %s is being deleted and cannot be changed.", after.Name)}
		}
		if err := gitops.CheckUnmanaged(after, "update department", "Department "+after.Name); err != nil {
			return err
		}
		after.Spec = *d.Spec.DeepCopy()
		v1alpha1.SetReason(after, d.Annotations[v1alpha1.AnnotationReason])
		return nil
	}, options...)
	before, _ = was.(*v1alpha1.Department)
	return before, after, translateNotFound(rejection.Translate("update department", err), d.Name)
}

func translateNotFound(err error, name string) error {
	if governance.KindOf(err) == governance.NotFound {
		return &governance.Error{Kind: governance.NotFound, Op: "find department", Message: fmt.Sprintf("Department %s was deleted.", name), Err: err}
	}
	return err
}

// NotEmpty returns why a department cannot be deleted: what is directly below it; empty for
// nothing.
func (s State) NotEmpty(name string) string {
	count := func(n int, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	teams, children := len(s.Tree.Teams(name)), len(s.Tree.Children(name))
	switch {
	case teams > 0 && children > 0:
		return count(teams, "team") + " and " + count(children, "department")
	case teams > 0:
		return count(teams, "team")
	case children > 0:
		return count(children, "department")
	}
	return ""
}

// Delete deletes a department as user, if nothing is in it.
func (s *Service) Delete(ctx context.Context, user governance.User, state State, name, resourceVersion, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	if !state.MayChange(name) {
		return access.Forbidden("delete department")
	}
	if left := state.NotEmpty(name); left != "" {
		return &governance.Error{Kind: governance.Conflict, Op: "delete department", Message: fmt.Sprintf("%s in department %s: move or delete them first.", left, name)}
	}
	d := &v1alpha1.Department{}
	d.Name = name
	err := s.remove(ctx, user, state, d, resourceVersion)
	if kind := governance.KindOf(err); err == nil || kind == governance.Forbidden || kind == governance.Unavailable {
		s.Audit.Record(audit.Change{User: user, Action: audit.Delete, Object: d, Old: d.Spec, Reason: reason, Err: err})
	}
	return translateNotFound(err, name)
}

func (s *Service) remove(ctx context.Context, user governance.User, state State, d *v1alpha1.Department, resourceVersion string) error {
	writer, err := s.writer(user, state)
	if err != nil {
		return err
	}
	same, err := s.Cluster.SpecUnchanged(ctx, writer, d, resourceVersion)
	if err != nil {
		return cluster.Translate("delete department", err)
	}
	if !same && d.DeletionTimestamp == nil {
		return &governance.Error{Kind: governance.Conflict, Op: "delete department", Message: "The department was changed in the meantime. Review it before you delete it."}
	}
	if err := gitops.CheckUnmanaged(d, "delete department", "Department "+d.Name); err != nil {
		return err
	}
	return rejection.Translate("delete department", writer.Delete(ctx, d, client.Preconditions{UID: &d.UID}))
}
