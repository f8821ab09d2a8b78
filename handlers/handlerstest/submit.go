package handlerstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// SubmitBackend records submitted tasks.
type SubmitBackend struct {
	Blocks    bool // Kueue admits no task while pods of another are not ready
	Numbered  bool // whether the policy allows priorities by number
	Reader    bool // may submit nothing
	Shares    []submit.Share
	Hidden    bool // may not see the team
	Failure   error
	Trial     *queries.Trial
	Verdict   submit.Verdict
	TakenName string
	Services  []submit.Kind      // that the user can create
	Commands  bool               // the user cannot create ConfigMaps, which scripts need
	Reachable bool               // by kubectl port-forward, and by Services
	MorePools []submit.QueuePool // of the team, beside ml.p5.48xlarge
	Unlisted  bool
	Submitted []submit.Request
	Plans     []submit.Plan // that were read from manifests and submitted
	Refusal   error         // of a dry run
	Forms     []string
	Manifest  string            // of each task that is submitted again
	Saved     map[string]string // templates with their manifests
	Repeated  []string          // tasks that were submitted again
	mu        sync.Mutex        // of Repeated
}

func (d *SubmitBackend) MayAgain(context.Context, governance.User, string, string) (bool, error) {
	return d.Manifest != "", nil
}

func (d *SubmitBackend) NamesAgain(_ context.Context, _ governance.User, list []tasks.Address) (names []string, err error) {
	for _, at := range list {
		names = append(names, at.Name+"-2")
	}
	return names, nil
}

func (d *SubmitBackend) Repeat(_ context.Context, _ governance.User, team string, at tasks.Address, name string, index *int32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if index != nil {
		name += fmt.Sprintf(" index %d", *index)
	}
	d.Repeated = append(d.Repeated, fmt.Sprintf("%s of %s as %s", at.Name, team, name))
	return d.Failure
}

func (d *SubmitBackend) Templates(context.Context, governance.User, submit.Team) (found []submit.Template, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.Saved)) {
		found = append(found, submit.Template{Name: name, Kind: "Job"})
	}
	return found, nil
}

func (d *SubmitBackend) FromTemplate(_ context.Context, _ governance.User, _ submit.Team, name string) (string, error) {
	return d.Saved[name], nil
}

func (d *SubmitBackend) SaveTemplate(_ context.Context, _ governance.User, _ submit.Team, name, manifest string) error {
	if d.Failure != nil {
		return d.Failure
	}
	if d.Saved == nil {
		d.Saved = map[string]string{}
	}
	d.Saved[name] = manifest
	return nil
}

func (d *SubmitBackend) DeleteTemplate(_ context.Context, _ governance.User, _ submit.Team, name string) error {
	delete(d.Saved, name)
	return d.Failure
}

func (d *SubmitBackend) MayAgainPast(context.Context, governance.User, string, string, string) (bool, error) {
	return d.Manifest != "", nil
}

func (d *SubmitBackend) Again(_ context.Context, _ governance.User, _ submit.Team, kind, name, _ string) (string, error) {
	if d.Manifest == "" {
		return "", &governance.Error{Kind: governance.NotFound, Message: "There is no " + kind + " " + name + "."}
	}
	return d.Manifest, nil
}

func (d *SubmitBackend) Differences(_ context.Context, _ governance.User, form, from submit.Plan) ([]string, error) {
	return form.Differences(from)
}

func (d *SubmitBackend) Team(context.Context, governance.User, string) (submit.Team, error) {
	switch {
	case d.Hidden:
		return submit.Team{}, &governance.Error{Kind: governance.NotFound, Message: "There is no team vision, or you may not see it."}
	case governance.KindOf(d.Failure) == governance.Unavailable && d.Failure != nil:
		return submit.Team{}, d.Failure
	}
	instance, _ := catalog.Known("ml.p5.48xlarge")
	kinds := []submit.Kind{submit.Job, submit.RayJob, submit.ElasticJob}
	if d.Reader {
		kinds = nil
	}
	var numbers []submit.PriorityClass
	if d.Numbered {
		numbers = Numbers()
	}
	return submit.Team{
		Numbers: numbers,
		Name:    "vision", Namespace: "hyperpod-ns-vision", Queue: "hyperpod-ns-vision-localqueue", Kinds: kinds, KindsKnown: true, Managed: true, MaySubmit: !d.Reader, AdmissionBlocked: d.Blocks,
		ServiceKinds: d.Services, MayForward: d.Reachable, MayExpose: d.Reachable, Writes: true, MayScript: !d.Commands, Shares: d.Shares,
		Classes: []submit.PriorityClass{{Name: "inference-priority", Priority: 90, DefaultTimeLimit: 3600, MaximumTimeLimit: 7200}, {Name: "training-priority", Priority: 60}},
		Pools: append([]submit.QueuePool{{
			Pool:         catalog.Pool{Name: "ml.p5.48xlarge", Instance: instance, Types: []string{"ml.p5.48xlarge"}},
			NodeSelector: map[string]string{catalog.InstanceTypeLabel: "ml.p5.48xlarge"}, Nodes: []quota.Resources{{catalog.GPU: 8, catalog.CPU: 179_970, catalog.Memory: 1890 * catalog.GiB}},
		}}, d.MorePools...),
	}, nil
}

func (d *SubmitBackend) Check(context.Context, governance.User, submit.Plan) (submit.Verdict, error) {
	v := d.Verdict
	if v.Outcome == "" {
		v.Outcome, v.Verdict.Constraint = submit.Starts, explain.PendingEvaluation
	}
	return v, nil
}

// Verify is Check with the Trial of Verdict, which Check does not return.
func (d *SubmitBackend) Verify(ctx context.Context, user governance.User, p submit.Plan) (submit.Verdict, error) {
	v, err := d.Check(ctx, user, p)
	v.Trial = d.Trial
	return v, err
}

func (d *SubmitBackend) Submit(_ context.Context, _ governance.User, t submit.Team, r submit.Request, form string) (submit.Submitted, error) {
	if d.Failure != nil {
		return submit.Submitted{}, d.Failure
	}
	plan, wrong := t.Complete(r)
	if len(wrong) > 0 {
		return submit.Submitted{}, &governance.Error{Kind: governance.Invalid, Message: "Some values are not valid.", Fields: wrong}
	}
	d.Submitted, d.Forms = append(d.Submitted, r), append(d.Forms, form)
	return submit.Submitted{Kind: plan.Kind, Namespace: "hyperpod-ns-vision", Name: r.Name, Listed: !d.Unlisted}, nil
}

func (d *SubmitBackend) SubmitPlan(_ context.Context, _ governance.User, p submit.Plan, form string) (submit.Submitted, error) {
	if d.Failure != nil {
		return submit.Submitted{}, d.Failure
	}
	d.Plans, d.Forms = append(d.Plans, p), append(d.Forms, form)
	return submit.Submitted{Kind: p.Kind, Namespace: p.Team.Namespace, Name: p.Name, Listed: !d.Unlisted}, nil
}

func (d *SubmitBackend) Try(context.Context, governance.User, submit.Plan) error { return d.Refusal }

func (d *SubmitBackend) Taken(_ submit.Team, _ submit.Kind, name string) bool {
	return name == d.TakenName && name != ""
}

// After implements teams.Submit: each name is a UID.
func (d *SubmitBackend) After(_ context.Context, _ governance.User, _ submit.Team, names []string) (after []tasks.After, err error) {
	for _, name := range names {
		after = append(after, tasks.After{UID: name})
	}
	return after, nil
}

// SubmitOnce implements teams.Submit.
func (d *SubmitBackend) SubmitOnce(ctx context.Context, user governance.User, p submit.Plan, key string, _ int) (string, error) {
	_, err := d.SubmitPlan(ctx, user, p, key)
	return "uid", err
}
