package submit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// MayAgain reports whether user may submit a task of a kind in the namespace again: the
// console reads the kind as a manifest, and user may create it.
func (s *Service) MayAgain(ctx context.Context, user governance.User, namespace, kind string) (bool, error) {
	if _, ok := sourceKind(kind); !ok || s.Cluster.ReadOnlyReason() != "" {
		return false, nil
	}
	allowed, err := s.allowed(ctx, user, []Kind{Kind(kind)}, namespace)
	return len(allowed) > 0, err
}

// sourceKind returns the version of a kind that is read as a manifest.
func sourceKind(kind string) (schema.GroupVersionKind, bool) {
	if kind == v1alpha1.ElasticJobKind {
		return v1alpha1.GroupVersion.WithKind(kind), true
	}
	for of := range sources {
		if of.Kind == kind {
			return of, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// MayAgainPast is MayAgain for a task that was deleted, whose manifest must be kept.
func (s *Service) MayAgainPast(ctx context.Context, user governance.User, namespace, kind, uid string) (bool, error) {
	if s.Manifests == nil {
		return false, nil
	}
	may, err := s.MayAgain(ctx, user, namespace, kind)
	if err != nil || !may {
		return false, err
	}
	kept, err := s.Manifests.WithManifest(ctx, []string{uid})
	return kept[uid], err
}

// Again returns the manifest of a task of the team, with its script before it, as it was
// before Kueue and the API server changed it, and under a name that no task has. It reads
// the object as user; if it was deleted, the manifest that history keeps. Without either it
// returns governance.NotFound. The user must be allowed to see the team.
func (s *Service) Again(ctx context.Context, user governance.User, t Team, kind, name, uid string) (string, error) {
	object, script, reader, err := s.original(ctx, user, tasks.Address{Namespace: t.Namespace, Kind: kind, Name: name, UID: uid})
	if err != nil {
		return "", err
	}
	rename(object, s.unusedName(ctx, reader, Kind(kind), t.Namespace, name, s.usedNames(ctx, Kind(kind), t.Namespace, name)))
	return againText(object, script)
}

// WithPods returns the manifest of a Job, after its script if it has one, with another number of
// pods: the text of Again. A Job whose pods complete once each, as those of the form, completes as
// often as it has pods. Any other text is returned as it is.
func WithPods(text string, pods int32) (string, error) {
	_, rest := CutScript(text)
	object, wrong := ReadSource([]byte(rest))
	if object == nil || len(wrong) > 0 || object.GetKind() != string(Job) {
		return text, nil
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if spec["completions"] == spec["parallelism"] {
		spec["completions"] = int64(pods)
	}
	spec["parallelism"] = int64(pods)
	m, err := writeManifest(Job, object.Object)
	return strings.TrimSuffix(text, rest) + m.Text, err
}

// WithIndex returns the manifest of an array, after its script if it has one, as the task of a
// single index: the text of Again.
func WithIndex(text string, index int32) (string, error) {
	_, rest := CutScript(text)
	object, _ := ReadSource([]byte(rest))
	problem := "is of a task that is no array"
	if object != nil {
		problem = onlyIndex(object, index)
	}
	if problem != "" {
		return "", invalid([]governance.FieldError{{Path: "index", Message: problem}})
	}
	m, err := writeManifest(Job, object.Object)
	return strings.TrimSuffix(text, rest) + m.Text, err
}

// original returns the object of a task as it was submitted and its script, and what reads as
// user.
func (s *Service) original(ctx context.Context, user governance.User, at tasks.Address) (object *unstructured.Unstructured, script string, reader client.Reader, err error) {
	if _, ok := sourceKind(at.Kind); !ok {
		return nil, "", nil, &governance.Error{Kind: governance.Invalid, Op: "submit again", Message: fmt.Sprintf("Tasks of kind %q cannot be submitted again.", at.Kind)}
	}
	if reader, err = s.Cluster.ReaderAs(user); err != nil {
		return nil, "", nil, err
	}
	object, err = s.read(ctx, reader, at.Namespace, at.Kind, at.Name, at.UID)
	switch {
	case apierrors.IsNotFound(err):
		object, script, err = s.readKept(ctx, at.Namespace, at.Kind, at.Name, at.UID)
	case err == nil:
		script, err = readScript(ctx, reader, object)
	}
	return object, script, reader, cluster.Translate("submit again", err)
}

// NamesAgain returns a name for each of these tasks to be submitted again with, none of them
// twice: see Again.
func (s *Service) NamesAgain(ctx context.Context, user governance.User, list []tasks.Address) ([]string, error) {
	reader, err := s.Cluster.ReaderAs(user)
	if err != nil {
		return nil, err
	}
	type one struct{ namespace, kind, base string }
	used, names := map[one]map[string]bool{}, make([]string, len(list))
	for i, at := range list {
		base, _ := series(at.Name)
		of := one{at.Namespace, at.Kind, base}
		if used[of] == nil {
			used[of] = s.usedNames(ctx, Kind(at.Kind), at.Namespace, at.Name)
		}
		names[i] = s.unusedName(ctx, reader, Kind(at.Kind), at.Namespace, at.Name, used[of])
		used[of][names[i]] = true
	}
	return names, nil
}

// Repeat submits a task of a team again with another name, as user: see Again. Of an array it
// submits only one index, unless index is nil. It does not wait until the list has the new task.
func (s *Service) Repeat(ctx context.Context, user governance.User, team string, at tasks.Address, name string, index *int32) error {
	t, err := s.Team(ctx, user, team)
	if err != nil {
		return err
	}
	at.Namespace = t.Namespace
	object, script, _, err := s.original(ctx, user, at)
	if err != nil {
		return err
	}
	rename(object, name)
	if index != nil {
		if problem := onlyIndex(object, *index); problem != "" {
			return invalid([]governance.FieldError{{Path: "index", Message: problem}})
		}
	}
	plan, wrong, err := t.planAgain(object)
	if err != nil {
		return err
	}
	if plan.Script = script; script != "" {
		wrong = append(wrong, plan.validateScript(t)...)
	}
	if len(wrong) > 0 {
		return invalid(wrong)
	}
	_, err = s.createTask(ctx, user, plan, "")
	return err
}

// planAgain plans an object of original.
func (t Team) planAgain(object *unstructured.Unstructured) (Plan, governance.FieldErrors, error) {
	if object.GetKind() != v1alpha1.ElasticJobKind {
		plan, _, wrong := t.PlanSource(object)
		return plan, wrong, nil
	}
	var e v1alpha1.ElasticJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &e); err != nil {
		return Plan{}, nil, manifestError(ElasticJob, err)
	}
	plan, _, wrong := t.PlanElasticJob(&e)
	return plan, wrong, nil
}

// read returns the object of a task as it was submitted.
func (s *Service) read(ctx context.Context, reader client.Reader, namespace, kind, name, uid string) (*unstructured.Unstructured, error) {
	of, _ := sourceKind(kind)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of)
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	if uid != "" && string(object.GetUID()) != uid {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: of.Group, Resource: of.Kind}, name)
	}
	return object, s.restore(ctx, reader, object)
}

// readKept returns the object of a deleted task and its script.
func (s *Service) readKept(ctx context.Context, namespace, kind, name, uid string) (*unstructured.Unstructured, string, error) {
	missing := &governance.Error{Kind: governance.NotFound, Op: "submit again", Message: fmt.Sprintf("There is no %s %s, and its manifest is not kept.", kind, name)}
	if s.Manifests == nil || uid == "" {
		return nil, "", missing
	}
	text, ok, err := s.Manifests.Manifest(ctx, uid)
	if err != nil {
		return nil, "", &governance.Error{Kind: governance.Unavailable, Op: "submit again", Message: "History cannot be read. Try again later.", Err: err}
	}
	script, object, err := readTask(text)
	if !ok || err != nil || object.GetNamespace() != namespace || object.GetKind() != kind || object.GetName() != name {
		return nil, "", missing
	}
	return object, script, nil
}

// restore removes from a task what the API server and Kueue set: Kueue changes the pod
// templates of a task while it is admitted, and its Workload has them unchanged.
func (s *Service) restore(ctx context.Context, reader client.Reader, object *unstructured.Unstructured) error {
	var sets []kueue.PodSet
	if task := s.Tasks.Index.Find(object.GetNamespace(), object.GetKind(), object.GetName(), string(object.GetUID())); task != nil && object.GetKind() != v1alpha1.ElasticJobKind {
		for _, part := range task.Parts {
			var w kueue.Workload
			switch err := reader.Get(ctx, client.ObjectKeyFromObject(part), &w); {
			case client.IgnoreNotFound(err) != nil:
				return err
			case err == nil:
				sets = append(sets, w.Spec.PodSets...)
			}
		}
	}
	templates, _ := templatesOf(object.Object)
	for _, one := range templates {
		i := slices.IndexFunc(sets, func(set kueue.PodSet) bool { return string(set.Name) == one.podSet })
		if i < 0 {
			continue
		}
		if err := one.restore(&sets[i].Template); err != nil {
			return manifestError(Kind(object.GetKind()), err)
		}
		restoreCount(object, &sets[i])
	}
	*object = *withoutServerFields(object)
	return nil
}

// withoutServerFields returns an object without what the API server, the controller of Jobs
// and Kueue set besides defaults, and without the marks of the console and kubectl.
func withoutServerFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	templates, _ := templatesOf(object.Object)
	for _, one := range templates {
		for _, label := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
			unstructured.RemoveNestedField(one.object, "metadata", "labels", label)
		}
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if manual, _ := spec["manualSelector"].(bool); object.GetKind() == string(Job) && !manual {
		delete(spec, "selector")
	}
	delete(spec, "suspend")
	unstructured.RemoveNestedField(spec, "runPolicy", "suspend")
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	marks := func(key, _ string) bool {
		return strings.Contains(key, "kuota.dev/") || key == corev1.LastAppliedConfigAnnotation
	}
	maps.DeleteFunc(labels, marks)
	maps.DeleteFunc(annotations, marks)
	if _, others := tasks.AfterOf(object); annotations[tasks.AdmissionGatedByAnnotation] != "" {
		if annotations[tasks.AdmissionGatedByAnnotation] = strings.Join(others, ","); len(others) == 0 {
			delete(annotations, tasks.AdmissionGatedByAnnotation)
		}
	}
	clean := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	clean.SetGroupVersionKind(object.GroupVersionKind())
	clean.SetNamespace(object.GetNamespace())
	clean.SetName(object.GetName())
	clean.SetLabels(labels)
	clean.SetAnnotations(annotations)
	return clean
}

// restore sets the fields of a pod template that Kueue changes (podset.Merge in Kueue).
func (p podTemplate) restore(original *corev1.PodTemplateSpec) error {
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(original)
	if err != nil {
		return err
	}
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "nodeSelector"}, {"spec", "tolerations"}, {"spec", "schedulingGates"}} {
		value, found, err := unstructured.NestedFieldNoCopy(from, path...)
		if err != nil {
			return err
		}
		if !found || isEmpty(value) {
			unstructured.RemoveNestedField(p.object, path...)
			continue
		}
		if err := unstructured.SetNestedField(p.object, value, path...); err != nil {
			return err
		}
	}
	return nil
}

// restoreCount sets the pods of a Job that Kueue admitted with fewer.
func restoreCount(object *unstructured.Unstructured, set *kueue.PodSet) {
	if set.MinCount == nil || object.GetKind() != string(Job) {
		return
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if object.GetAnnotations()[equalCompletions] == "true" {
		spec["completions"] = int64(set.Count)
	}
	spec["parallelism"] = int64(set.Count)
}

// readScript returns the script of a task; "" without one, or if it was deleted.
func readScript(ctx context.Context, reader client.Reader, object *unstructured.Unstructured) (string, error) {
	if !mountsScript(object) {
		return "", nil
	}
	namespace := object.GetNamespace()
	var script corev1.ConfigMap
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: scriptName(object.GetName())}, &script); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return script.Data[scriptKey], nil
}

// configMapVolumes calls do with the name of the ConfigMap of each volume in a task.
func configMapVolumes(object *unstructured.Unstructured, do func(volume map[string]any, name string)) {
	templates, _ := templatesOf(object.Object)
	for _, one := range templates {
		spec, _ := one.object["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		for _, v := range volumes {
			volume, _ := v.(map[string]any)
			if of, ok := volume["configMap"].(map[string]any); ok {
				name, _ := of["name"].(string)
				do(of, name)
			}
		}
	}
}

func mountsScript(object *unstructured.Unstructured) (mounts bool) {
	configMapVolumes(object, func(_ map[string]any, name string) { mounts = mounts || name == scriptName(object.GetName()) })
	return mounts
}

// rename renames a task, and its script in its pods.
func rename(object *unstructured.Unstructured, name string) {
	old := scriptName(object.GetName())
	configMapVolumes(object, func(volume map[string]any, of string) {
		if of == old {
			volume["name"] = scriptName(name)
		}
	})
	object.SetName(name)
}

// numbered matches a name that ends in a number, as nextName numbers them.
var numbered = regexp.MustCompile(`^(.*)-([0-9]{1,4})$`)

// series returns a name without its number, and the number, 1 for none.
func series(name string) (string, int) {
	if m := numbered.FindStringSubmatch(name); m != nil {
		return m[1], cmp.Or(atoi(m[2]), 1)
	}
	return name, 1
}

// nextName returns a name of at most length bytes that is not used. Its number follows the
// highest of its series, so that it does not fill a gap between tasks of one sweep.
func nextName(name string, used map[string]bool, length int) string {
	base, n := series(name)
	for other := range used {
		if of, number := series(other); of == base {
			n = max(n, number)
		}
	}
	for {
		n++
		suffix := "-" + strconv.Itoa(n)
		next := strings.TrimRight(base[:min(len(base), length-len(suffix))], "-.") + suffix
		if !used[next] {
			return next
		}
	}
}

// usedNames returns the names of tasks of a kind, and of past ones that are like name.
func (s *Service) usedNames(ctx context.Context, kind Kind, namespace, name string) map[string]bool {
	used := map[string]bool{}
	s.Tasks.Index.Each(func(task *tasks.Task) {
		if task.Namespace == namespace && task.Kind == string(kind) {
			used[task.Name] = true
		}
	})
	if s.Manifests != nil {
		base, _ := series(name)
		past, _ := s.Manifests.Tasks(ctx, history.Query{Namespace: namespace, Kind: string(kind), NameContains: base}) // without history the name is only less good
		for _, task := range past {
			used[task.Name] = true
		}
	}
	return used
}

// unusedName returns the name that follows name and is not used, by no object that reader
// sees either.
func (s *Service) unusedName(ctx context.Context, reader client.Reader, kind Kind, namespace, name string, used map[string]bool) string {
	object := &unstructured.Unstructured{}
	of, _ := sourceKind(string(kind))
	object.SetGroupVersionKind(of)
	for {
		next := nextName(name, used, maxName[kind])
		if reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: next}, object) != nil {
			return next
		}
		used[next] = true // a job that is no task
	}
}

func atoi(digits string) int { n, _ := strconv.Atoi(digits); return n }

// againText writes a task after its script.
func againText(object *unstructured.Unstructured, script string) (string, error) {
	kind := Kind(object.GetKind())
	p := Plan{Request: Request{Kind: kind, Name: object.GetName(), Script: script}, Team: Team{Namespace: object.GetNamespace()}}
	m, err := writeManifest(kind, object.Object)
	if err != nil {
		return "", err
	}
	m, err = p.AfterScript(m)
	return m.Text, err
}

// Differences returns the paths in the object of a manifest at which the object of a form
// differs from it; at most ten. What differs as written is compared once more as the API
// server and its admission complete it, in dry runs of user: they add defaults.
func (s *Service) Differences(ctx context.Context, user governance.User, form, from Plan) ([]string, error) {
	paths, err := form.Differences(from)
	if err != nil || len(paths) == 0 {
		return paths, err
	}
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return paths, nil // a console that only reads
	}
	limited, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	var completed [2]any
	for i, plan := range []Plan{form, from} {
		object, err := plan.complete(limited, writer)
		if err != nil { // as it would be refused: the dry run of the whole task has the reason
			return paths, nil
		}
		completed[i] = object.Object
	}
	return differences(completed[0], completed[1])
}

// complete returns the object of a plan as the API server and its admission complete it.
func (p Plan) complete(ctx context.Context, writer client.Client) (*unstructured.Unstructured, error) {
	object, err := p.object(p.Kind)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	completed := &unstructured.Unstructured{Object: content}
	completed.SetName("")
	completed.SetGenerateName("try-")
	if err := writer.Create(ctx, completed, client.DryRunAll); err != nil {
		return nil, err
	}
	completed.SetName(p.Name)
	return withoutServerFields(completed), nil
}
