package submit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/submit"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withScript returns the plan of a task that runs a script.
func (w world) withScript(t *testing.T, name, script string) submit.Plan {
	t.Helper()
	plan := w.plan(t, name, 1, 1)
	plan.Request.Script = script
	return plan
}

func (w world) namespace() string { return desired.DefaultNaming.Namespace(w.team) }

// jobExists reports whether the team has a Job of a name that is not being deleted.
func (w world) jobExists(t *testing.T, name string) bool {
	t.Helper()
	var job batchv1.Job
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace(), Name: name}, &job)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil && job.DeletionTimestamp == nil
}

// TestSubmitScript submits scripts as a member: each is a ConfigMap that its job owns.
// Whatever fails, no job without its script remains.
func TestSubmitScript(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	script := "#!/usr/bin/env python3\n# a-secret é\n"
	script += strings.Repeat("#", submit.MaxScript-len(script))
	plan := w.withScript(t, "trains", script)
	read := func(ctx context.Context, name string) (c corev1.ConfigMap, err error) {
		err = w.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace(), Name: name + "-script"}, &c)
		return c, err
	}

	w.submit(t, plan)
	stored, err := read(t.Context(), "trains")
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace(), Name: "trains"}, &job); err != nil {
		t.Fatal(err)
	}
	owners := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "trains", UID: job.UID}}
	if diff := cmp.Diff(owners, stored.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if stored.Data["script"] != script || stored.Labels[submit.LabelScriptOf] != "trains" || stored.Immutable == nil || !*stored.Immutable {
		t.Errorf("the script is not the submitted one, or can change: labels %v", stored.Labels)
	}
	if text := auditLog.String(); strings.Contains(text, "a-secret") || !strings.Contains(text, fmt.Sprint(submit.MaxScript)) {
		t.Errorf("the audit log has the script, or lacks its length")
	}

	w.submit(t, plan) // twice
	if err := w.Client.Delete(t.Context(), &stored); err != nil {
		t.Fatal(err)
	}
	w.submit(t, plan) // as after a lost response
	if healed, err := read(t.Context(), "trains"); err != nil || healed.UID == stored.UID || healed.OwnerReferences[0].UID != job.UID {
		t.Errorf("a missing script after the form was sent again: %v", err)
	}
	refuse := func(name, script, form string) {
		t.Helper()
		plan := w.withScript(t, name, script)
		_, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, form)
		if governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "name: ") {
			t.Errorf("%s: got %v, want an error at name", name, err)
		}
	}
	refuse("trains", "true", "form-trains") // the same form with another script

	w.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: taken-script, namespace: %s}}", w.namespace()))
	refuse("taken", "true", "form-taken")
	if w.jobExists(t, "taken") {
		t.Error("a job whose script has the name of another ConfigMap was created")
	}

	if err := w.Client.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		if _, err := read(ctx, "trains"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the script of a deleted job: got %v, want NotFound", err)
		}
		return nil
	})
}

// The console deletes a job whose script the API server refuses only with its owner.
func TestRefusedScript(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	w.Apply(t, strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "!has(object.metadata.ownerReferences)", message: "no owners here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`, "NAME", w.namespace()))
	t.Cleanup(func() {
		_, _ = w.TryKubectl("", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", w.namespace())
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		err := w.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "owned", Namespace: w.namespace(), OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "a"}},
		}}, client.DryRunAll)
		if err == nil {
			return fmt.Errorf("the policy does not apply yet")
		}
		return nil
	})
	plan := w.withScript(t, "refused", "true")
	_, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "form-refused")
	if governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "script: no owners here") {
		t.Errorf("got %v, want an error at script", err)
	}
	if w.jobExists(t, "refused") {
		t.Error("the job exists without its script")
	}
}

// The script of an elastic task belongs to its ElasticJob, whose Jobs all mount it.
func TestElasticScript(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	plan := w.withScript(t, "grows", "true")
	plan.Request.Elastic = &v1alpha1.ElasticPolicy{MaxReplicas: 2}
	if _, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "form-grows"); err != nil {
		t.Fatal(err)
	}
	var script corev1.ConfigMap
	var elastic v1alpha1.ElasticJob
	for name, object := range map[string]client.Object{"grows-script": &script, "grows": &elastic} {
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace(), Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	if o := script.OwnerReferences; len(o) != 1 || o[0].UID != elastic.UID || o[0].Kind != v1alpha1.ElasticJobKind {
		t.Errorf("got the owners %v, want the ElasticJob", o)
	}
}

// A member applies the manifests of a task with a script, deletes a script, and can do
// nothing to other ConfigMaps: some configure programs that read all namespaces.
func TestMembersWriteScriptsOnly(t *testing.T) {
	t.Parallel()
	w := setup(t, 1)
	for i, verb := range []string{"apply", "create"} {
		script := "echo 1\n"
		if verb == "create" { // apply copies it into an annotation, for which it is too long
			script = strings.Repeat("echo 1\n", submit.MaxScript/7)
		}
		plan, wrong := w.withScript(t, fmt.Sprintf("by-hand-%d", i), "").Team.Plan(w.withScript(t, fmt.Sprintf("by-hand-%d", i), script).Request)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		manifests, err := plan.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := w.TryKubectl(manifests[0].Text, verb, "-f", "-", "--as", w.member.Name); err != nil {
			t.Errorf("kubectl %s: %s", verb, out)
		}
	}
	try := func(input string, args ...string) error {
		if out, err := w.TryKubectl(input, append(args, "-n", w.namespace(), "--as", w.member.Name)...); err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	}
	if err := try("", "delete", "configmap", "by-hand-0-script"); err != nil {
		t.Errorf("a script is deleted: %v", err)
	}
	const script = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a-script, labels: {kuota.dev/script-of: a}}, data: {script: "true"}}`
	create := []string{"create", "-f", "-", "--dry-run=server"}
	if err := try(script, create...); err != nil {
		t.Errorf("a script is created: %v", err)
	}
	for name, change := range map[string][2]string{
		"no label":         {"kuota.dev/script-of: a", ""},
		"another label":    {"kuota.dev/script-of: a", "kuota.dev/script-of: a, grafana_dashboard: 'true'"},
		"another name":     {"name: a-script", "name: kube-root-ca.crt"},
		"a generated name": {"name: a-script", "generateName: a-script"},
		"an annotation":    {"name: a-script", "name: a-script, annotations: {reflector.v1.k8s.emberstack.com/reflects: default/a}"},
		"a finalizer":      {"name: a-script", "name: a-script, finalizers: [example.com/a]"},
		"other data":       {", data: {", ", data: {config.yaml: a, "},
		"binary data":      {", data: {", ", binaryData: {a: YQ==}, data: {"},
	} {
		if err := try(strings.Replace(script, change[0], change[1], 1), create...); err == nil || !strings.Contains(err.Error(), "kuota-scripts") {
			t.Errorf("%s: got %v, want a refusal by kuota-scripts", name, err)
		}
	}
	const template = `{apiVersion: v1, kind: ConfigMap, metadata: {name: kuota-template-a, labels: {kuota.dev/template: "true"}}, data: {task.yaml: "a"}}`
	if err := try(template, create...); err != nil {
		t.Errorf("a template is created: %v", err)
	}
	for name, change := range map[string][2]string{
		"a template of another name":   {"name: kuota-template-a", "name: settings"},
		"a template without its value": {`"true"`, `"false"`},
		"a template with a label":      {`"true"`, `"true", grafana_dashboard: "1"`},
		"a template that is a script":  {`"true"`, `"true", kuota.dev/script-of: a`},
		"a template with other data":   {"task.yaml: ", "config.yaml: "},
	} {
		if err := try(strings.Replace(template, change[0], change[1], 1), create...); err == nil || !strings.Contains(err.Error(), "kuota-scripts") {
			t.Errorf("%s: got %v, want a refusal by kuota-scripts", name, err)
		}
	}
	if err := try("", "delete", "configmap", "kube-root-ca.crt"); err == nil || !strings.Contains(err.Error(), "kuota-scripts") {
		t.Errorf("another ConfigMap is deleted: got %v, want a refusal by kuota-scripts", err)
	}
	if err := try("", "annotate", "configmap", "by-hand-1-script", "a=b"); err == nil {
		t.Error("a member changes a ConfigMap")
	}
	w.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edits, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, w.namespace(), w.member.Name))
	clustertest.Eventually(t, soon, func(context.Context) error {
		return try(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`, create...)
	})
}
