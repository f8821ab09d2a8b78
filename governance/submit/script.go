package submit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// MaxScript bounds a script, in bytes.
	MaxScript = 256 << 10

	// LabelScriptOf is the label of a ConfigMap with a script: the name of its task. The
	// admission policy kuota-scripts limits what members create to such ConfigMaps.
	LabelScriptOf = "kuota.dev/script-of"

	scriptFolder = "/kuota" // where containers have the script
	scriptKey    = "script" // in the ConfigMap, and the name of the file
)

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// interpreter matches the first line of a script that names its interpreter.
var interpreter = regexp.MustCompile(`^#![ \t]*/`)

// command returns the command of the containers; nil for the image's own. The kernel starts
// a script with the interpreter of its first line, and without one it is a shell script.
func (r Request) command() []string {
	switch {
	case strings.HasPrefix(r.Script, "#!"):
		return []string{scriptFolder + "/" + scriptKey}
	case r.Script != "":
		return []string{"sh", scriptFolder + "/" + scriptKey}
	case r.Command != "":
		return []string{"sh", "-c", r.Command}
	}
	return nil
}

func (r Request) validateScript(t Team) (wrong governance.FieldErrors) {
	switch first, _, _ := strings.Cut(r.Script, "\n"); {
	case r.Script == "":
		return nil
	case !t.MayScript:
		wrong.Add("script", "you have no permission to create ConfigMaps in the team's namespace, which a script needs: give a command instead")
	case r.Command != "":
		wrong.Add("script", "give either a command or a script: both are set")
	case len(r.Script) > MaxScript:
		wrong.Addf("script", "is too long: a script has at most %d KiB", MaxScript>>10)
	case strings.ContainsRune(r.Script, utf8.RuneError): // also of invalid bytes
		wrong.Add("script", "is not text in UTF-8: save the file as UTF-8")
	case strings.ContainsRune(r.Script, 0):
		wrong.Add("script", "contains a NUL character: a script must be text")
	case strings.HasPrefix(first, "#!") && !interpreter.MatchString(first):
		wrong.Add("script", "the first line must name its interpreter by the whole path, such as #!/usr/bin/env python3")
	}
	if slices.ContainsFunc(r.Volumes, func(v ClaimMount) bool { return v.Path == scriptFolder || strings.HasPrefix(v.Path, scriptFolder+"/") }) {
		wrong.Addf("volumes", "%s has the script: mount at another path", scriptFolder)
	}
	return wrong
}

// script returns the ConfigMap with the script; nil without one. It cannot be changed, so
// that all pods of a task run the same.
func (p Plan) script() *corev1.ConfigMap {
	if p.Script == "" {
		return nil
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: configMap.Version, Kind: configMap.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: scriptName(p.name()), Namespace: p.Team.Namespace, Labels: map[string]string{LabelScriptOf: p.name()}},
		Immutable:  new(true),
		Data:       map[string]string{scriptKey: p.Script},
	}
}

func scriptName(task string) string { return task + "-script" }

// mountScript adds the script to a pod with one container.
func (p Plan) mountScript(spec *corev1.PodSpec) {
	if p.Script == "" {
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: scriptKey, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: scriptName(p.name())}, DefaultMode: new(int32(0o555)),
	}}})
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scriptKey, MountPath: scriptFolder, ReadOnly: true})
}

// AfterScript returns the manifest of a job after that of its script.
func (p Plan) AfterScript(job Manifest) (Manifest, error) {
	script := p.script()
	if script == nil {
		return job, nil
	}
	m, err := writeManifest(Kind(configMap.Kind), script)
	return Manifest{job.Kind, m.Text + "---\n" + job.Text}, err
}

// CutScript cuts the ConfigMap with the script off a text of manifests, in which it is
// first, as in Manifest. Any other text it returns whole.
func CutScript(text string) (script *corev1.ConfigMap, rest string) {
	first, rest, found := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n---\n")
	script = &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict([]byte(first), script); !found || err != nil || script.GroupVersionKind() != configMap {
		return nil, text
	}
	return script, rest
}

// WithScript returns the plan of a task whose manifest comes after that of a script. The
// paths of errors are those of the ConfigMap.
func (p Plan) WithScript(script *corev1.ConfigMap) (Plan, []governance.FieldError) {
	if script == nil {
		return p, nil
	}
	if script.Labels[LabelScriptOf] == "" {
		return p, []governance.FieldError{{Path: "metadata.name", Message: fmt.Sprintf("ConfigMap %s cannot be submitted: before a task can only be the ConfigMap with its script, as the form writes it. Remove it from the text; if the task needs it, ask an admin to create it", script.Name)}}
	}
	p.Script = script.Data[scriptKey]
	wrong := p.validateScript(p.Team)
	for i := range wrong {
		wrong[i].Path = "data." + scriptKey
	}
	if p.Script == "" {
		return p, append(wrong, governance.FieldError{Path: "data." + scriptKey, Message: "is missing: the ConfigMap before a task has its script"})
	}
	want := p.script()
	switch {
	case script.Name != want.Name:
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: "of the ConfigMap must be " + want.Name})
	case len(script.Data) > 1 || len(script.BinaryData) > 0 || !maps.Equal(script.Labels, want.Labels) || len(script.Annotations) > 0:
		wrong = append(wrong, governance.FieldError{Path: "metadata", Message: fmt.Sprintf("the ConfigMap may have the script and the label %s: %s, and nothing else", LabelScriptOf, p.name())})
	}
	return p, wrong
}

// tryScript creates the script as a dry run, so that a job is created only if its script
// can be. Without an error there is none of its name; AlreadyExists may be that of the same
// form.
func (p Plan) tryScript(ctx context.Context, writer client.Client) error {
	script := p.script()
	if script == nil {
		return nil
	}
	err := writer.Create(ctx, script, client.DryRunAll)
	if apierrors.IsAlreadyExists(err) {
		return err
	}
	return scriptError(err)
}

// createScript creates the script of a job, which owns it: Kubernetes deletes it with the
// job. If the job has it already, createScript succeeds. The kubelet starts no pod of the
// job before.
func (p Plan) createScript(ctx context.Context, writer client.Client, kind schema.GroupVersionKind, job client.Object) error {
	script := p.script()
	if script == nil {
		return nil
	}
	version, name := kind.ToAPIVersionAndKind()
	script.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: name, Name: job.GetName(), UID: job.GetUID()}}
	err := writer.Create(ctx, script)
	if !apierrors.IsAlreadyExists(err) {
		return scriptError(err)
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(configMap)
	if err := writer.Get(ctx, client.ObjectKeyFromObject(script), existing); err != nil {
		return scriptError(err)
	}
	if slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == job.GetUID() }) {
		return nil
	}
	return p.scriptTaken()
}

// scriptTaken returns the error of a task whose script would have the name of another
// ConfigMap.
func (p Plan) scriptTaken() error {
	return nameError(p.namePath(), fmt.Sprintf("there is a ConfigMap %s in the namespace already, which is not of this task; choose another name", scriptName(p.name())))
}

// undo deletes a job whose script cannot be created, and returns why it cannot.
func undo(ctx context.Context, writer client.Client, job client.Object, because error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := writer.Delete(ctx, job, client.Preconditions{UID: new(job.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) == nil {
		return because
	}
	return &governance.Error{
		Kind: governance.KindOf(because), Op: "submit task", Err: errors.Join(because, err),
		Message: fmt.Sprintf("%s was created, but not its script, without which its pods do not start. Submit again to add the script, or delete the task.", job.GetName()),
	}
}

// scriptError translates an error of the API server about a script.
func scriptError(err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := rejection.Fields(err); ok {
		for i := range wrong {
			wrong[i].Path = "script"
		}
		return &governance.Error{Kind: governance.Invalid, Op: "submit task", Message: "The API server refused the script.", Fields: wrong, Err: err}
	}
	err = cluster.Translate("submit task", err)
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Forbidden {
		ours.Message = "You cannot submit a script to this team: you have no permission to create configmaps in its namespace, or a quota of the namespace refuses another one. Submit a command instead, or ask an admin."
	}
	return err
}
