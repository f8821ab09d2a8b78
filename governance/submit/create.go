package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// listTimeout bounds the wait for the new task in the list. If Kueue creates no
	// Workload, the job appears without one after about three seconds.
	listTimeout = 5 * time.Second
	// undoTimeout bounds the deletion of a job without its script.
	undoTimeout = 3 * time.Second
)

// Submitted is a job that was created.
type Submitted struct {
	Kind            Kind
	Namespace, Name string
	Listed          bool // whether its task is in the list
}

// Submit creates the Job or ElasticJob of a request as user. An invalid request is
// governance.Invalid with all errors; paths are the names of the form's fields. form is
// the id of the form: if it created the same object before, Submit succeeds.
func (s *Service) Submit(ctx context.Context, user governance.User, t Team, r Request, form string) (Submitted, error) {
	plan, wrong := t.Complete(r)
	if len(wrong) > 0 {
		return Submitted{}, invalid(wrong)
	}
	return s.submit(ctx, user, plan, form)
}

// LabelRequest identifies the request of the API that created a task: of its user and its
// idempotency key.
const LabelRequest = "kuota.dev/request"

// SubmitOnce creates the object of a plan as part of a request. key, which fits into a label, is
// its idempotency key and its user; empty for none. The same request again changes nothing; another one with the key of this user is
// governance.Invalid, as long as the task exists: the console looks for it by its own permission, and
// finds tasks of this user only. It returns the UID of the task, and does not wait until the list has the task.
func (s *Service) SubmitOnce(ctx context.Context, user governance.User, p Plan, key string, part int) (uid string, err error) {
	if key == "" {
		return uidOf(s.createTask(ctx, user, p, ""))
	}
	p.request = fmt.Sprintf("%s-%d", key, part)
	for _, kind := range p.Team.Kinds {
		known, ok := sourceKind(string(kind))
		if !ok {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(known)
		err := s.Cluster.APIReader().List(ctx, list, client.InNamespace(p.Team.Namespace), client.MatchingLabels{LabelRequest: p.request})
		if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
			return "", cluster.Translate("submit task", err)
		}
		if len(list.Items) > 0 && (kind != p.Kind || list.Items[0].Name != p.name()) {
			return "", &governance.Error{
				Kind: governance.Invalid, Op: "submit task", Message: "The idempotency key was used for another request.",
				Fields: []governance.FieldError{{Path: "Idempotency-Key", Message: fmt.Sprintf("was used for %s %s: use another key for another task", kind, list.Items[0].Name)}},
			}
		}
	}
	return uidOf(s.createTask(ctx, user, p, p.request))
}

// uidOf returns the UID of an object that was created.
func uidOf(object client.Object, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return string(object.GetUID()), nil
}

func invalid(wrong []governance.FieldError) error {
	return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "Some values are not valid.", Fields: wrong}
}

func (s *Service) submit(ctx context.Context, user governance.User, plan Plan, form string) (Submitted, error) {
	job, err := s.createTask(ctx, user, plan, form)
	if err != nil {
		return Submitted{}, err
	}
	waiting, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	done := Submitted{Kind: plan.Kind, Namespace: job.GetNamespace(), Name: job.GetName()}
	done.Listed = s.Tasks.WaitForTask(waiting, done.Namespace, string(done.Kind), done.Name, string(job.GetUID()))
	return done, nil
}

// createTask creates the object of a plan, records it and keeps its manifest.
func (s *Service) createTask(ctx context.Context, user governance.User, plan Plan, form string) (client.Object, error) {
	limited, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	object, err := plan.object(plan.Kind)
	if err != nil {
		return nil, manifestError(plan.Kind, err)
	}
	job, err := s.create(limited, user, plan, object, form)
	if err != nil {
		if kind := governance.KindOf(err); kind == governance.Forbidden || kind == governance.Unavailable {
			s.Audit.Record(audit.Change{User: user, Action: audit.Submit, Object: object, New: plan.summary(), Err: err})
		}
		return nil, withRetryText(err)
	}
	s.Audit.Record(audit.Change{User: user, Action: audit.Submit, Object: job, New: plan.summary()})
	s.keep(ctx, plan, job)
	return job, nil
}

// keep keeps the manifest of a task that was created, with its script. If history cannot be
// written, Keeper keeps it later, without the script.
func (s *Service) keep(ctx context.Context, plan Plan, job client.Object) {
	if _, ok := sourceKind(string(plan.Kind)); !ok || s.Manifests == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if m, err := plan.Manifest(); err == nil {
		_ = s.Manifests.KeepManifest(ctx, string(job.GetUID()), job.GetCreationTimestamp().Time, m.Text)
	}
}

// summary returns what the audit log records of a task. It leaves out the command and the
// script, which can contain secrets.
func (p Plan) summary() any {
	each := map[string]string{}
	for _, name := range p.PodResources.Names() {
		amount := p.PodResources.Quantity(name)
		each[name] = amount.String()
	}
	most, replicas := ptr.Deref(p.Elastic, v1alpha1.ElasticPolicy{}).MaxReplicas, ptr.Deref(p.Serving, Serving{}).Replicas
	return struct {
		Pool  string            `json:"pool"`
		Other []string          `json:"otherPools,omitempty"`
		Class string            `json:"class,omitempty"`
		Pods  int32             `json:"pods"`
		Most  int32             `json:"most,omitempty"`     // of an elastic task
		Of    int32             `json:"replicas,omitempty"` // of a service
		Each  map[string]string `json:"each"`
		Limit int32             `json:"timeLimitSeconds,omitempty"`
		Image string            `json:"image"`
		Bytes int               `json:"scriptBytes,omitempty"`
	}{p.Pool, p.OtherPools, p.Class, p.Pods, most, replicas, each, p.TimeLimit, p.Image, len(p.Script)}
}

func (s *Service) create(ctx context.Context, user governance.User, p Plan, job client.Object, form string) (client.Object, error) {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return nil, err
	}
	mark, err := formMark(form, job, p.Script)
	if err != nil {
		return nil, &governance.Error{Op: "submit task", Message: "The task could not be encoded.", Err: err}
	}
	if form != "" {
		annotations := job.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[allocations.AnnotationRequest] = mark
		job.SetAnnotations(annotations)
	}
	if p.request != "" {
		labels := maps.Clone(job.GetLabels())
		labels[LabelRequest] = p.request
		job.SetLabels(labels)
	}
	if err := p.tryPods(ctx, writer); err != nil {
		return nil, translate(err, p)
	}
	var options []client.CreateOption
	if p.source != nil {
		options = append(options, client.FieldValidation(metav1.FieldValidationStrict))
	}
	kind := job.GetObjectKind().GroupVersionKind()
	if err = p.tryScript(ctx, writer); err == nil {
		if err = writer.Create(ctx, job, options...); !apierrors.IsAlreadyExists(err) {
			err = translate(err, p)
		}
	}
	switch {
	case err == nil:
		if err := p.createScript(ctx, writer, kind, job); err != nil {
			return nil, undo(ctx, writer, job, err)
		}
		return job, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, err
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(kind)
	switch err := writer.Get(ctx, client.ObjectKeyFromObject(job), existing); {
	case apierrors.IsNotFound(err) && p.Script != "":
		return nil, p.scriptTaken()
	case err != nil:
		return nil, cluster.Translate("submit task", err)
	}
	id, _, _ := strings.Cut(existing.Annotations[allocations.AnnotationRequest], "/")
	switch {
	case form != "" && existing.Annotations[allocations.AnnotationRequest] == mark:
		return existing, p.createScript(ctx, writer, kind, existing) // the response was lost, or the form was sent twice
	case form != "" && id == form:
		return nil, nameError(p.namePath(), fmt.Sprintf("%s was already submitted from this form, with other values; choose another name for a second task", existing.Name))
	}
	return nil, nameError(p.namePath(), fmt.Sprintf("there is a %s %s in the namespace already; choose another name", p.Kind, existing.Name))
}

// tryPods creates a Job with the pods of a plan as a dry run, if its kind is one whose pods
// the API server does not check. What a Job may not be, such as one more for a quota of the
// namespace, is no error.
func (p Plan) tryPods(ctx context.Context, writer client.Client) error {
	switch {
	case p.Elastic != nil:
		return tryBase(ctx, writer, p.ElasticJob())
	case p.Serving != nil || p.Kind == Job || !slices.Contains(p.Team.Kinds, Job):
		return nil
	case p.source != nil:
		if wrong := p.tryTemplates(ctx, writer); len(wrong) > 0 {
			return invalid(wrong)
		}
		return nil
	}
	job := p.Job()
	job.Name, job.GenerateName = "", "try-"
	err := writer.Create(ctx, job, client.DryRunAll)
	if _, invalid := rejection.Fields(err); !invalid {
		return nil
	}
	return err
}

// tryBase creates the Job of the minimum as a dry run: the API server checks the pods of
// an ElasticJob only when its Jobs are created. The labels of parts are the console's.
func tryBase(ctx context.Context, writer client.Client, e *v1alpha1.ElasticJob) error {
	base := elastic.Base(e)
	for _, label := range []string{v1alpha1.LabelElasticJob, v1alpha1.LabelElasticJobUID, v1alpha1.LabelElasticIncrement, desired.LabelManagedBy} {
		delete(base.Labels, label)
		delete(base.Spec.Template.Labels, label)
	}
	if limit := base.Spec.ActiveDeadlineSeconds; limit != nil { // without those labels it needs one of its own
		base.Labels[enforcement.TimeLimitLabel] = strconv.FormatInt(*limit, 10)
	}
	err := writer.Create(ctx, base, client.DryRunAll)
	if apierrors.IsAlreadyExists(err) { // it was submitted before, or its controller reports the name
		return nil
	}
	return err
}

// namePath is where the name of a task was typed.
func (p Plan) namePath() string {
	if p.source != nil || p.read != nil {
		return "metadata.name"
	}
	return "name"
}

func nameError(path, message string) error {
	return &governance.Error{
		Kind: governance.Invalid, Op: "submit task", Message: "The task's name cannot be used.",
		Fields: []governance.FieldError{{Path: path, Message: message}},
	}
}

// formMark returns the id of a form and a digest of its job, which was not created yet, and
// of its script.
func formMark(form string, job client.Object, script string) (string, error) {
	text, err := json.Marshal(job)
	sum := sha256.Sum256(append(text, script...))
	return form + "/" + hex.EncodeToString(sum[:8]), err
}

// formFields maps paths in a Job, an ElasticJob or a service to fields of the form.
var formFields = []struct{ prefix, field string }{
	{"metadata.name", "name"},
	{"metadata.labels", "class"},
	{"metadata.labels[" + enforcement.TimeLimitLabel + "]", "timeLimit"},
	{"metadata.annotations", "least"},
	{"spec.activeDeadlineSeconds", "timeLimit"},
	{"spec.parallelism", "pods"},
	{"spec.completions", "pods"},
	{"spec.template.spec.containers[0].image", "image"},
	{"spec.template.spec.containers[0].command", "command"},
	{"spec.template.spec.containers[0].env", "env"},
	{"spec.template.spec.containers[0].envFrom", "secrets"},
	{"spec.template.spec.containers[0].volumeMounts", "volumes"},
	{"spec.template.spec.volumes", "volumes"},
	{"spec.template.spec.serviceAccountName", "serviceAccount"},
	{"spec.backoffLimit", "tries"},
	{"spec.replicas", "replicas"},
	{"spec.leaderWorkerTemplate.size", "pods"},
	{"spec.template.spec.containers[0].ports", "port"},
	{"spec.volumeClaimTemplates", "homeSize"},
}

// translate translates an error of the API server or of admission to a governance.Error.
// The paths are those of the form, or those of a manifest that was read.
func translate(err error, p Plan) error {
	if err == nil {
		return nil
	}
	if found := strictErrors(err); len(found) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "The API server refused it.", Fields: found, Err: err}
	}
	var ready *governance.Error
	if errors.As(err, &ready) {
		return err
	}
	wrong, ok := rejection.Fields(err)
	if !ok {
		err = cluster.Translate("submit task", err)
		var ours *governance.Error
		if errors.As(err, &ours) && ours.Kind == governance.Forbidden {
			ours.Message = "You cannot submit tasks to this team. Ask an admin to add you as a member."
			if p.Kind != Job {
				article := "a"
				if p.Kind == ElasticJob {
					article = "an"
				}
				ours.Message = fmt.Sprintf("You cannot submit this to the team: you have no permission to create %s %s in its namespace. Ask an admin to add you as a member.", article, p.Kind)
			}
			if _, limit, found := strings.Cut(ours.Err.Error(), "exceeded quota: "); found {
				ours.Message = "A quota of the namespace itself refuses another job: " + limit + "."
			}
		}
		return err
	}
	for i := range wrong {
		if p.read != nil || p.source != nil {
			continue
		}
		path, at := "", strings.Replace(wrong[i].Path, "spec.leaderWorkerTemplate.workerTemplate", "spec.template", 1)
		for _, f := range formFields {
			if strings.HasPrefix(at, f.prefix) {
				path = f.field
			}
		}
		if field, ok := strings.CutPrefix(wrong[i].Path, "spec.elasticPolicy"); ok {
			path = "elastic" + field
		}
		if path == "" && wrong[i].Path != "" {
			wrong[i].Message = wrong[i].Path + ": " + wrong[i].Message
		}
		wrong[i].Path = path
	}
	return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "The API server refused it.", Fields: wrong, Err: err}
}

// withRetryText explains how to retry after a request without a response.
func withRetryText(err error) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Nothing you typed is lost: submit again in a moment. It becomes one task, even if it arrived already."
		if rejection.WebhookUnavailable(err) {
			ours.Message = "Kueue does not answer, and no job can be created without it. Nothing you typed is lost: submit again in a moment."
		}
	}
	return err
}
