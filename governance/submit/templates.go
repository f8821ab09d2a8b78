package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// LabelTemplate is the label, with the value "true", of ConfigMaps with a team's
	// templates, in its namespace. The admission policy kuota-scripts lets members create
	// and delete them.
	LabelTemplate = "kuota.dev/template"

	templatePrefix = "kuota-template-" // of the ConfigMap, before the template's name
	templateKey    = "task.yaml"       // in the ConfigMap: the manifest of a task, after that of its script
	maxTemplate    = 512 << 10         // bytes
	maxTemplates   = 200               // of a team that are listed
)

// Template is a task that a team saved to submit it again.
type Template struct {
	Name    string
	Kind    string // of the task; empty if it cannot be read
	Created time.Time
}

// Templates returns the templates of a team by name, 200 at most, as user. It returns none
// if the user may not list ConfigMaps in the team's namespace.
func (s *Service) Templates(ctx context.Context, user governance.User, t Team) (found []Template, err error) {
	may, err := s.Access.May(ctx, user, "list", corev1.SchemeGroupVersion.WithResource("configmaps"), t.Namespace)
	if err != nil || !may {
		return nil, err
	}
	reader, err := s.Cluster.ReaderAs(user)
	if err != nil {
		return nil, err
	}
	var list corev1.ConfigMapList
	if err := reader.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingLabels{LabelTemplate: "true"}, client.Limit(maxTemplates)); err != nil {
		return nil, cluster.Translate("list templates", err)
	}
	for _, of := range list.Items {
		name, ok := strings.CutPrefix(of.Name, templatePrefix)
		if !ok {
			continue
		}
		one := Template{Name: name, Created: of.CreationTimestamp.Time}
		if _, object, err := readTask(of.Data[templateKey]); err == nil {
			one.Kind = object.GetKind()
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// FromTemplate returns the manifest of a team's template, with its script before it, as
// user. Its task has a name that no other has.
func (s *Service) FromTemplate(ctx context.Context, user governance.User, t Team, name string) (string, error) {
	reader, err := s.Cluster.ReaderAs(user)
	if err != nil {
		return "", err
	}
	var of corev1.ConfigMap
	err = reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: templatePrefix + name}, &of)
	if apierrors.IsNotFound(err) || err == nil && of.Labels[LabelTemplate] != "true" {
		return "", &governance.Error{Kind: governance.NotFound, Op: "read template", Message: fmt.Sprintf("Team %s has no template %s.", t.Name, name)}
	}
	if err != nil {
		return "", cluster.Translate("read template", err)
	}
	script, object, err := readTask(of.Data[templateKey])
	if err != nil { // written by another program: the page shows what is wrong with it
		return of.Data[templateKey], nil
	}
	if kind, task := Kind(object.GetKind()), object.GetName(); s.Taken(t, kind, task) {
		rename(object, s.unusedName(ctx, reader, kind, t.Namespace, task, s.usedNames(ctx, kind, t.Namespace, task)))
	}
	return againText(object, script)
}

// readTask returns the task of a text and its script.
func readTask(text string) (script string, object *unstructured.Unstructured, err error) {
	first, rest := CutScript(text)
	encoded, err := yaml.YAMLToJSON([]byte(rest))
	if err != nil {
		return "", nil, err
	}
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		return "", nil, err
	}
	if _, ok := sourceKind(object.GetKind()); !ok {
		return "", nil, errors.New("is no task")
	}
	if first != nil {
		script = first.Data[scriptKey]
	}
	return script, withoutServerFields(object), nil
}

// SaveTemplate saves the manifest of a task as a template of its team, as user. A name that
// is not valid, or taken, is governance.Invalid at the path name.
func (s *Service) SaveTemplate(ctx context.Context, user governance.User, t Team, name, manifest string) error {
	of := templateOf(t, name)
	refuse := func(format string, args ...any) error {
		return &governance.Error{
			Kind: governance.Invalid, Op: "save template", Message: "The template was not saved.",
			Fields: []governance.FieldError{{Path: "name", Message: fmt.Sprintf(format, args...)}},
		}
	}
	switch {
	case name == "":
		return refuse("give the template a name")
	case len(validation.IsDNS1123Label(name)) > 0:
		return refuse("use at most 63 lower-case letters, digits and hyphens; start and end with a letter or digit")
	case len(manifest) > maxTemplate:
		return refuse("the task has more than %d KiB, which a template cannot have", maxTemplate>>10)
	}
	of.Data = map[string]string{templateKey: manifest}
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}
	err = writer.Create(ctx, of)
	s.Audit.Record(audit.Change{User: user, Action: audit.Create, Object: of, Err: err})
	if apierrors.IsAlreadyExists(err) {
		return refuse("there is a template %s already; delete it, or choose another name", name)
	}
	if wrong, ok := rejection.Fields(err); ok {
		return &governance.Error{Kind: governance.Invalid, Op: "save template", Message: "The API server refused it.", Fields: wrong, Err: err}
	}
	return cluster.Translate("save template", err)
}

// DeleteTemplate deletes a template of a team, as user. One that does not exist is no error.
func (s *Service) DeleteTemplate(ctx context.Context, user governance.User, t Team, name string) error {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}
	of := templateOf(t, name)
	err = writer.Delete(ctx, of)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.Audit.Record(audit.Change{User: user, Action: audit.Delete, Object: of, Err: err})
	return cluster.Translate("delete template", err)
}

func templateOf(t Team, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: configMap.Version, Kind: configMap.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: templatePrefix + name, Namespace: t.Namespace, Labels: map[string]string{LabelTemplate: "true"}},
	}
}
