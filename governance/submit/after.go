package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxAfter bounds the tasks that one task waits for.
const maxAfter = 20

// After returns the tasks that names, such as prep, job/prep or prep:any, are of in the team's
// namespace, as user sees them. The path of errors is after.
func (s *Service) After(ctx context.Context, user governance.User, t Team, names []string) ([]tasks.After, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var wrong governance.FieldErrors
	if why, err := s.withoutGates(ctx); err != nil {
		return nil, err
	} else if why != "" {
		wrong.Add("after", why)
		return nil, invalid(wrong)
	}
	if len(names) > maxAfter {
		wrong.Addf("after", "names %d tasks, want at most %d", len(names), maxAfter)
		return nil, invalid(wrong)
	}
	var list []tasks.After
	for _, name := range names {
		at, how, _ := strings.Cut(name, ":")
		if how != "" && how != "ok" && how != "any" {
			wrong.Addf("after", "is %q: write NAME:ok, to start once it has succeeded, or NAME:any, however it ends", name)
			continue
		}
		uid, problem, err := s.named(ctx, user, t, at)
		if err != nil {
			return nil, err
		}
		after := tasks.After{UID: uid, Any: how == "any"}
		if of := s.Tasks.Index.ByKey(tasks.Key{Namespace: t.Namespace, UID: uid}); of != nil && of.State == tasks.Failed && !after.Any {
			problem = "the task " + at + " has failed: write " + at + ":any to start however it ended"
		}
		switch {
		case problem != "":
			wrong.Add("after", problem)
		case !slices.Contains(list, after):
			list = append(list, after)
		}
	}
	if len(wrong) > 0 {
		return nil, invalid(wrong)
	}
	return list, nil
}

// named returns the UID of the task with a name, or a kind and a name, in the namespace of a
// team, or what is wrong with the name. It reads as user, since a task of a moment ago is in no list.
func (s *Service) named(ctx context.Context, user governance.User, t Team, at string) (uid, problem string, err error) {
	reader, err := s.Cluster.ClientAs(user)
	if err != nil {
		return "", "", err
	}
	kind, name, found := strings.Cut(at, "/")
	if !found {
		kind, name = "", at
	}
	var kinds []Kind
	for _, k := range t.Kinds {
		if kind != "" && !strings.EqualFold(kind, string(k)) {
			continue
		}
		gvk, ok := sourceKind(string(k))
		if !ok {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		switch err := reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, object); {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || meta.IsNoMatchError(err):
		case err != nil:
			return "", "", cluster.Translate("find task", err)
		case isPart(object):
		default:
			uid, kinds = string(object.UID), append(kinds, k)
		}
	}
	switch len(kinds) {
	case 0:
		return "", fmt.Sprintf("there is no task %s in namespace %s", at, t.Namespace), nil
	case 1:
		return uid, "", nil
	}
	return "", fmt.Sprintf("several tasks have the name %s: write %s/%s", name, strings.ToLower(string(kinds[0])), name), nil
}

// isPart reports whether an object is part of another task.
func isPart(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.Kind != "CronJob" || object.GetLabels()[v1alpha1.LabelElasticJobUID] != ""
}

// withoutGates returns why Kueue would not hold a task back; empty if it would.
func (s *Service) withoutGates(ctx context.Context) (string, error) {
	current, err := s.Kueue(ctx)
	if err != nil {
		return "", cluster.Translate("read Kueue's configuration", err)
	}
	if kueueconfig.GateEnabled(current, kueueconfig.GateAdmission) {
		return "", nil
	}
	version, _ := kueueconfig.Version(current.Image, 0)
	return fmt.Sprintf("cannot be used here: Kueue %s holds no task back until another one ends. It does with the feature gate %s, which is on from Kueue 0.19", cmp.Or(version, "of an unknown version"), kueueconfig.GateAdmission), nil
}

// gate makes an object wait for tasks.
func gate(object client.Object, after []tasks.After) {
	if len(after) == 0 {
		return
	}
	_, gates := tasks.AfterOf(object) // those of other controllers stay
	for _, a := range after {
		gates = append(gates, a.Gate())
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[tasks.AdmissionGatedByAnnotation] = strings.Join(gates, ",")
	object.SetAnnotations(annotations)
}
