package submit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/submit"
)

// Each manifest that a page shows is accepted unchanged, with the permissions of the
// member who sees it.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	var shown []submit.Kind
	for _, elastic := range []bool{false, true} {
		plan := w.plan(t, "shown", 2, 1)
		if elastic {
			r := plan.Request
			r.Name, r.Elastic = "shown-elastic", &v1alpha1.ElasticPolicy{MaxReplicas: 4}
			var wrong []governance.FieldError
			if plan, wrong = plan.Team.Plan(r); len(wrong) > 0 {
				t.Fatal(wrong)
			}
		}
		manifests, err := plan.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manifests {
			shown = append(shown, m.Kind)
			if err := w.create(w.member, m.Text); err != nil {
				t.Errorf("%s: %v\n%s", m.Kind, err, m.Text)
			}
		}
	}
	if want := []submit.Kind{submit.Job, submit.ElasticJob}; !slices.Equal(shown, want) {
		t.Errorf("got manifests of %v, want %v", shown, want)
	}
}

// create creates the object of a manifest as a user, with kubectl as users do.
func (w world) create(user governance.User, manifest string) error {
	if out, err := w.TryKubectl(manifest, "create", "-f", "-", "--as", user.Name); err != nil {
		return errors.New(out)
	}
	return nil
}

// The kinds are those that the user may create, of those that Kueue manages and the
// cluster has.
func TestKindsOfAReader(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	namespace := desired.DefaultNaming.Namespace(w.team)
	reader := governance.User{Name: clustertest.Name("reader")}
	w.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member-tasks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, namespace, reader.Name))
	var team submit.Team
	clustertest.Eventually(t, soon, func(ctx context.Context) (err error) {
		team, err = w.Service.Team(ctx, reader, w.team)
		return err
	})
	if len(team.Kinds) > 0 || team.MaySubmit || !team.Managed {
		t.Errorf("a reader: got kinds %v, submits %t, want none", team.Kinds, team.MaySubmit)
	}
	plan := w.plan(t, "read", 1, 1)
	text, err := plan.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.create(reader, text[0].Text); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a reader creates a Job: got %v, want it to be forbidden", err)
	}
}
