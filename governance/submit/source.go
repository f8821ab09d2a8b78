package submit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/imports/trainingjobs"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/yaml"
)

// sources are the kinds that are created as a manifest has them, with their versions.
var sources = map[schema.GroupVersionKind]bool{
	{Group: "batch", Version: "v1", Kind: string(Job)}:                    true,
	{Group: "kubeflow.org", Version: "v1", Kind: string(PyTorchJob)}:      true,
	{Group: "ray.io", Version: "v1", Kind: string(RayJob)}:                true,
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: string(JobSet)}: true,
}

// ReadSource reads the object of a text with one manifest of a kind that is created as the
// manifest has it. For other kinds and several objects it returns why they cannot be
// submitted, and nil without problems for a text that package imports reads, such as one with
// an elastic task.
func ReadSource(text []byte) (*unstructured.Unstructured, []governance.FieldError) {
	documents, wrong := document.Read(text) // bounds it
	if len(wrong) > 0 {
		return nil, nil
	}
	if wrong := otherKinds(documents); len(wrong) > 0 {
		return nil, wrong
	}
	if len(documents) != 1 || !sources[kindIn(documents[0])] || documents[0].Get("spec").Has("elasticPolicy") {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSONStrict(text)
	if err == nil {
		err = object.UnmarshalJSON(encoded)
	}
	if err != nil {
		return nil, []governance.FieldError{{Message: "cannot be read: " + err.Error()}}
	}
	return object, nil
}

// kindIn returns the kind of an object; the zero value if it names none.
func kindIn(object *document.Node) schema.GroupVersionKind {
	version, kind := object.Get("apiVersion"), object.Get("kind")
	if version == nil || kind == nil {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(version.Text, kind.Text)
}

// insteadOf is how users get what a manifest of another kind would do.
var insteadOf = map[string]string{
	"Pod":                   "write a Job whose spec.template has the metadata and the spec of the Pod",
	"CronJob":               "write a Job with the spec of its jobTemplate, which runs once",
	string(Deployment):      serviceInstead,
	string(LeaderWorkerSet): serviceInstead,
	string(StatefulSet):     serviceInstead,
}

const serviceInstead = "inference services and notebooks have forms of their own, on the page of the team"

// otherKinds returns why objects are not submitted from a manifest, in one sentence; nothing
// for one object of sources, and for what package imports reads.
func otherKinds(documents []*document.Node) []governance.FieldError {
	var names []string
	var other *document.Node
	for _, d := range documents {
		kind := kindIn(d)
		names = append(names, strings.TrimSpace(kind.Kind+" "+textAt(d.Get("metadata").Get("name"))))
		imported := kind.Empty() || kind.Group == v1alpha1.GroupVersion.Group || kind.Kind == "List" || trainingjobs.Matches(d) && !sources[kind]
		if !imported && (!sources[kind] || len(documents) > 1) {
			other = d
		}
	}
	if other == nil {
		return nil
	}
	kind := kindIn(other)
	known, ok := sourceKind(kind.Kind)
	switch {
	case len(documents) > 1:
		return []governance.FieldError{{Message: fmt.Sprintf("The text has %d objects: %s. Submit one task at a time. Before it can only be the ConfigMap with its script, as the form writes it", len(documents), strings.Join(names[:min(len(names), 5)], ", "))}}
	case ok && known.Group == kind.Group:
		return []governance.FieldError{{Path: "apiVersion", Message: fmt.Sprintf("is %s, which is not read here; write %s", document.Quote(kind.GroupVersion().String()), known.GroupVersion())}}
	case insteadOf[kind.Kind] != "":
		return []governance.FieldError{{Path: "kind", Message: fmt.Sprintf("a %s cannot be submitted from a manifest: %s", kind.Kind, insteadOf[kind.Kind])}}
	}
	return []governance.FieldError{{Path: "kind", Message: fmt.Sprintf("%s of %s is no kind of task that can be submitted here; paste a Job, PyTorchJob, RayJob, JobSet or ElasticJob", document.Quote(kind.Kind), document.Quote(kind.GroupVersion().String()))}}
}

func textAt(n *document.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// podTemplate is one of the pod templates of a task.
type podTemplate struct {
	path   string // in the object
	podSet string // its name in the Workload
	object map[string]any
	count  int32
	corev1.PodTemplateSpec
}

// templatesOf returns the pod templates of an object of one of sources, or an ElasticJob.
func templatesOf(object map[string]any) (all []podTemplate, wrong []governance.FieldError) {
	add := func(holder map[string]any, path, podSet string, count int64) {
		value, found, err := unstructured.NestedFieldNoCopy(holder, "template")
		if !found && err == nil {
			return
		}
		one := podTemplate{path: path + ".template", podSet: podSet, count: int32(min(max(count, 0), maxPods))}
		if one.object, found = value.(map[string]any); err == nil && !found {
			err = errors.New("is no object")
		}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(one.object, &one.PodTemplateSpec)
		}
		if err != nil {
			wrong = append(wrong, governance.FieldError{Path: one.path, Message: err.Error()})
			return
		}
		all = append(all, one)
	}
	count := func(of map[string]any, field string, without int64) int64 {
		switch n := of[field].(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
		return without
	}
	name := func(of map[string]any, field string) string { name, _ := of[field].(string); return name }
	spec, _ := object["spec"].(map[string]any)
	list := func(of map[string]any, field, path string, do func(map[string]any, string)) {
		items, _ := of[field].([]any)
		for i, item := range items {
			if item, ok := item.(map[string]any); ok {
				do(item, fmt.Sprintf("%s.%s[%d]", path, field, i))
			}
		}
	}
	switch kind, _ := object["kind"].(string); Kind(kind) {
	case PyTorchJob:
		roles, _ := spec["pytorchReplicaSpecs"].(map[string]any)
		for _, role := range slices.Sorted(maps.Keys(roles)) {
			if of, ok := roles[role].(map[string]any); ok {
				add(of, "spec.pytorchReplicaSpecs."+role, strings.ToLower(role), count(of, "replicas", 1))
			}
		}
	case RayJob:
		cluster, _ := spec["rayClusterSpec"].(map[string]any)
		if head, ok := cluster["headGroupSpec"].(map[string]any); ok {
			add(head, "spec.rayClusterSpec.headGroupSpec", "head", 1)
		}
		list(cluster, "workerGroupSpecs", "spec.rayClusterSpec", func(of map[string]any, path string) { add(of, path, name(of, "groupName"), count(of, "replicas", 0)) })
	case JobSet:
		list(spec, "replicatedJobs", "spec", func(of map[string]any, path string) {
			job, _ := of["template"].(map[string]any)
			inner, _ := job["spec"].(map[string]any)
			add(inner, path+".template.spec", name(of, "name"), count(of, "replicas", 1)*count(inner, "parallelism", 1))
		})
	default:
		add(spec, "spec", string(kueue.DefaultPodSetName), count(spec, "parallelism", 1))
	}
	return all, wrong
}

// PlanSource plans an object of ReadSource, in the team's namespace and queue. changed are
// the values that the team's replace, and what is left out. An invalid object has no Plan
// but all errors; their paths are those of the object.
func (t Team) PlanSource(object *unstructured.Unstructured) (p Plan, changed, wrong governance.FieldErrors) {
	kind := Kind(object.GetKind())
	if !slices.Contains(t.Kinds, kind) {
		wrong.Addf("kind", "you have no permission to create a %s in the team's namespace, or Kueue does not manage it here", kind)
	}
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	replace := func(path, value, by string) {
		if value != "" && value != by {
			changed.Addf(path, "is %s; the team's %s is used", value, by)
		}
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	switch name := object.GetName(); {
	case name == "" && metadata["name"] != nil:
		wrong.Addf("metadata.name", "is read as %v, which is no text: put it into quotation marks", metadata["name"])
	case name == "":
		wrong.Add("metadata.name", "is missing: give the task a name")
	default:
		wrong.Add("metadata.name", kind.checkName(name))
	}
	clean := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range object.DeepCopy().Object {
		switch field {
		case "apiVersion", "kind", "spec":
			clean.Object[field] = value
		case "metadata":
		case "status":
			changed.Add(field, "is left out")
		default:
			wrong.Add(field, "is no field of a "+string(kind))
		}
	}
	clean.SetName(object.GetName())
	clean.SetNamespace(t.Namespace)
	templates, unread := templatesOf(clean.Object)
	wrong = append(wrong, unread...)
	changed = append(changed, moveLabels(templates, labels)...)
	replace("metadata.namespace", object.GetNamespace(), t.Namespace)
	share, queue := t.shareOf(labels[constants.QueueLabel], kind)
	replace("metadata.labels["+constants.QueueLabel+"]", labels[constants.QueueLabel], queue)
	labels[constants.QueueLabel] = queue
	annotations := maps.Clone(object.GetAnnotations())
	more, invalid := t.takeNumber(labels, annotations)
	changed, wrong = append(changed, more...), append(wrong, invalid...)
	if class := t.defaultClass(share); class != "" && labels[desired.PriorityClassLabel] == "" {
		labels[desired.PriorityClassLabel] = class
	}
	of, ok := t.Class(labels[desired.PriorityClassLabel])
	if !ok {
		wrong.Add("metadata.labels["+desired.PriorityClassLabel+"]", noClass(labels[desired.PriorityClassLabel], t))
	}
	if labels[enforcement.TimeLimitLabel] == "" && of.DefaultTimeLimit > 0 {
		labels[enforcement.TimeLimitLabel] = strconv.Itoa(int(of.DefaultTimeLimit))
	}
	limit, err := strconv.ParseInt(labels[enforcement.TimeLimitLabel], 10, 32)
	problem := t.checkTimeLimit(of.Name, limit)
	if labels[enforcement.TimeLimitLabel] != "" && (err != nil || limit < 1) {
		problem = "must be a whole number of seconds from 1"
	}
	wrong.Add("metadata.labels["+enforcement.TimeLimitLabel+"]", problem)
	clean.SetLabels(labels)
	clean.SetAnnotations(annotations)
	for _, field := range slices.Sorted(maps.Keys(metadata)) {
		if _, kept := clean.Object["metadata"].(map[string]any)[field]; !kept && metadata[field] != nil && field != "generateName" && field != "name" {
			changed.Add("metadata."+field, "is left out")
		}
	}
	if len(templates) == 0 && len(unread) == 0 {
		wrong.Add("spec", "has no pod template")
	}
	for _, one := range templates {
		if len(one.Spec.Containers) == 0 {
			wrong.Add(one.path+".spec.containers", "is missing: name a container")
		}
	}
	if len(wrong) > 0 {
		return Plan{}, changed, wrong
	}
	spec := &templates[0].Spec
	p = Plan{
		Request: Request{Kind: kind, Name: clean.GetName(), Class: of.Name, TimeLimit: int32(limit), Image: spec.Containers[0].Image},
		Team:    t, QueuePool: t.selected(spec.NodeSelector), PodResources: quotaRequests(spec), source: clean, templates: templates,
	}
	p.Pool, p.Share, p.Team.Queue = p.QueuePool.Name, share, queue
	for _, one := range templates {
		p.Pods += one.count
	}
	return p, changed, nil
}

// quotaRequests returns the requests of a pod that quota counts.
func quotaRequests(spec *corev1.PodSpec) quota.Resources {
	requests := tasks.PodRequests(spec)
	maps.DeleteFunc(requests, func(name string, amount resources.Amount) bool { return amount <= 0 || !catalog.IsQuotaResource(name) })
	return requests
}

// moveLabels moves the labels that Kueue reads of a task from its pod templates to labels,
// those of the task. Kueue ignores them in the pods of a task.
func moveLabels(templates []podTemplate, labels map[string]string) (changed []governance.FieldError) {
	for _, one := range templates {
		for _, label := range []string{constants.QueueLabel, desired.PriorityClassLabel, desired.PriorityLabel, enforcement.TimeLimitLabel} {
			value := one.Labels[label]
			if value == "" {
				continue
			}
			message := "is moved to metadata.labels: Kueue does not read it in the pods of a task"
			switch labels[label] {
			case "":
				labels[label] = value
			case value:
			default:
				message = fmt.Sprintf("is %s and left out: that of the task is %s", value, labels[label])
			}
			changed = append(changed, governance.FieldError{Path: one.path + ".metadata.labels[" + label + "]", Message: message})
			delete(one.Labels, label)
			unstructured.RemoveNestedField(one.object, "metadata", "labels", label)
		}
	}
	return changed
}

// podSets returns the pods of a plan that was read from a manifest.
func (p Plan) podSets() (sets []explain.PodSet) {
	for _, one := range p.templates {
		sets = append(sets, explain.PodSet{Name: one.path, Count: one.count, MinCount: one.count, Requests: tasks.PodRequests(&one.Spec), Spec: &one.Spec})
	}
	return sets
}

// WithoutRequests returns the paths of the pod templates of a manifest that request nothing
// that quota counts: Kueue assigns them no flavor, so that they run in any pool. The form
// fills in requests.
func (p Plan) WithoutRequests() (paths []string) {
	sets := p.podSets()
	if p.read != nil {
		sets = p.proposal(p.Pods).PodSets
		sets[0].Name = "spec.template"
	}
	for _, set := range sets {
		if len(quotaRequests(set.Spec)) == 0 {
			paths = append(paths, set.Name)
		}
	}
	return paths
}

// tryTemplates is tryPods for each pod template of a manifest. The paths of errors are those
// of the manifest.
func (p Plan) tryTemplates(ctx context.Context, writer client.Client) (wrong []governance.FieldError) {
	for _, one := range p.templates {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: p.Team.Namespace, Labels: p.source.GetLabels()},
			Spec:       batchv1.JobSpec{Suspend: new(true), Template: one.PodTemplateSpec},
		}
		if job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure { // a Job has no other
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
		found, _ := rejection.Fields(writer.Create(ctx, job, client.DryRunAll))
		for _, w := range found {
			if at, ok := strings.CutPrefix(w.Path, "spec.template"); ok { // all else is reported of the object itself
				wrong = append(wrong, governance.FieldError{Path: one.path + at, Message: w.Message})
			}
		}
	}
	return wrong
}

// unknownField matches one of the errors of a strict decoder.
var unknownField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)

// strictErrors returns the fields that a kind does not have, of an error of the API server.
func strictErrors(err error) (wrong []governance.FieldError) {
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "strict decoding error") {
		return nil
	}
	for _, match := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		message := "is no field of this kind"
		if match[1] == "duplicate" {
			message = "is set twice"
		}
		wrong = append(wrong, governance.FieldError{Path: match[2], Message: message})
	}
	return wrong
}

// SubmitPlan creates the object of a plan that was read from a manifest unchanged, as Submit
// does. The paths of errors are those of the object.
func (s *Service) SubmitPlan(ctx context.Context, user governance.User, p Plan, form string) (Submitted, error) {
	return s.submit(ctx, user, p, form)
}

// Try creates the object of a plan that was read from a manifest as a dry run, as user. The
// paths of errors are those of the object.
func (s *Service) Try(ctx context.Context, user governance.User, p Plan) error {
	limited, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}
	object, err := p.object(p.Kind)
	if err != nil {
		return manifestError(p.Kind, err)
	}
	if err := p.tryPods(limited, writer); err != nil {
		return withRetryText(translate(err, p))
	}
	switch err := p.tryScript(limited, writer); {
	case apierrors.IsAlreadyExists(err):
		return p.scriptTaken()
	case err != nil:
		return withRetryText(err)
	}
	err = writer.Create(limited, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	if apierrors.IsAlreadyExists(err) {
		return nameError("metadata.name", fmt.Sprintf("there is a %s %s in the namespace already; choose another name", p.Kind, p.Name))
	}
	return withRetryText(translate(err, p))
}
