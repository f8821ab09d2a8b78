package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/rejection"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writeTimeout bounds the creation of a job, well below the timeout of the web
	// server.
	writeTimeout = 8 * time.Second
	// listTimeout bounds the wait for the new task in the list. If Kueue creates no
	// Workload, the job appears without one after about three seconds.
	listTimeout = 5 * time.Second
)

// Submitted is a job that was created.
type Submitted struct {
	Namespace, Name string
	Listed          bool // whether its task is in the list
}

// Submit creates the Job of a request as user. An invalid request is
// governance.Invalid with all errors; paths are the names of the form's fields. form is
// the id of the form: if it created the same Job before, Submit succeeds.
func (s *Service) Submit(ctx context.Context, user governance.User, t Team, r Request, form string) (Submitted, error) {
	plan, wrong := t.Complete(r)
	if len(wrong) > 0 {
		return Submitted{}, &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "Some values are not valid.", Fields: wrong}
	}
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	job, err := s.create(limited, user, plan, form)
	if err != nil {
		if kind := governance.KindOf(err); kind == governance.Forbidden || kind == governance.Unavailable {
			s.Audit.Record(audit.Change{User: user, Action: "create", Object: plan.Job(), New: plan.summary(), Err: err})
		}
		return Submitted{}, withRetryText(err)
	}
	s.Audit.Record(audit.Change{User: user, Action: "create", Object: job, New: plan.summary()})
	waiting, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	return Submitted{Namespace: job.Namespace, Name: job.Name, Listed: s.Tasks.WaitForTask(waiting, job.Namespace, "job", job.Name, string(job.UID))}, nil
}

// summary returns what the audit log records of a task. It leaves out the command, which
// can contain secrets.
func (p Plan) summary() any {
	each := map[string]string{}
	for _, name := range p.PodResources.Names() {
		amount := p.PodResources.Quantity(name)
		each[name] = amount.String()
	}
	return struct {
		Pool  string            `json:"pool"`
		Class string            `json:"class,omitempty"`
		Pods  int32             `json:"pods"`
		Each  map[string]string `json:"each"`
		Image string            `json:"image"`
	}{p.Pool, p.Class, p.Pods, each, p.Image}
}

func (s *Service) create(ctx context.Context, user governance.User, p Plan, form string) (*batchv1.Job, error) {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return nil, err
	}
	job := p.Job()
	mark, err := formMark(form, job)
	if err != nil {
		return nil, &governance.Error{Op: "submit task", Message: "The task could not be encoded.", Err: err}
	}
	if form != "" {
		if job.Annotations == nil {
			job.Annotations = map[string]string{}
		}
		job.Annotations[allocations.AnnotationRequest] = mark
	}
	err = writer.Create(ctx, job)
	if !apierrors.IsAlreadyExists(err) {
		return job, translate(err)
	}
	var existing batchv1.Job
	if err := writer.Get(ctx, client.ObjectKeyFromObject(job), &existing); err != nil {
		return nil, cluster.Translate("submit task", err)
	}
	id, _, _ := strings.Cut(existing.Annotations[allocations.AnnotationRequest], "/")
	switch {
	case form != "" && existing.Annotations[allocations.AnnotationRequest] == mark:
		return &existing, nil // the response was lost, or the form was sent twice
	case form != "" && id == form:
		return nil, nameError(fmt.Sprintf("%s was already submitted from this form, with other values; choose another name for a second task", job.Name))
	}
	return nil, nameError(fmt.Sprintf("there is a job %s in the namespace already; choose another name", job.Name))
}

func nameError(message string) error {
	return &governance.Error{
		Kind: governance.Invalid, Op: "submit task", Message: "The task's name cannot be used.",
		Fields: []governance.FieldError{{Path: "name", Message: message}},
	}
}

// formMark returns the id of a form and a digest of its job.
func formMark(form string, job *batchv1.Job) (string, error) {
	text, err := json.Marshal([]any{job.Labels, job.Annotations, job.Spec})
	sum := sha256.Sum256(text)
	return form + "/" + hex.EncodeToString(sum[:8]), err
}

// formFields maps paths in a Job to fields of the form.
var formFields = []struct{ prefix, field string }{
	{"metadata.name", "name"},
	{"metadata.labels", "class"},
	{"metadata.annotations", "least"},
	{"spec.parallelism", "pods"},
	{"spec.completions", "pods"},
	{"spec.template.spec.containers[0].image", "image"},
	{"spec.template.spec.containers[0].command", "command"},
}

// translate translates an error of the API server or of admission to a governance.Error.
func translate(err error) error {
	if err == nil {
		return nil
	}
	wrong, ok := rejection.Fields(err)
	if !ok {
		err = cluster.Translate("submit task", err)
		var ours *governance.Error
		if errors.As(err, &ours) && ours.Kind == governance.Forbidden {
			ours.Message = "You cannot submit tasks to this team. Ask an admin to add you as a member."
			if _, limit, found := strings.Cut(ours.Err.Error(), "exceeded quota: "); found {
				ours.Message = "A quota of the namespace itself refuses another job: " + limit + "."
			}
		}
		return err
	}
	for i := range wrong {
		path := ""
		for _, f := range formFields {
			if strings.HasPrefix(wrong[i].Path, f.prefix) {
				path = f.field
			}
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
