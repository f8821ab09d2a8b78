package gitops

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Manager is what keeps an object as a repository says.
type Manager struct {
	Tool   string // "Flux" or "Argo CD"
	Source string // what there applies it, such as "Kustomization flux-system/teams"; empty where only the tool is known
}

// Where Flux and Argo CD mark what they apply. Argo CD's default of older
// versions, the label app.kubernetes.io/instance, says nothing by itself: Helm
// sets it too. Where Argo CD tracks by annotation, that one is there.
const (
	fluxKustomization = "kustomize.toolkit.fluxcd.io/"
	fluxHelmRelease   = "helm.toolkit.fluxcd.io/"
	argoTracking      = "argocd.argoproj.io/tracking-id"
	argoInstance      = "argocd.argoproj.io/instance"
)

// fieldManagers are the names under which the tools own fields.
var fieldManagers = map[string]string{
	"kustomize-controller":          "Flux",
	"helm-controller":               "Flux",
	"argocd-controller":             "Argo CD",
	"argocd-application-controller": "Argo CD",
}

// Of tells who manages an object. ok is false for one that people edit here.
func ManagerOf(object metav1.Object) (m Manager, ok bool) {
	labels := object.GetLabels()
	if name := labels[fluxKustomization+"name"]; name != "" {
		return Manager{"Flux", "Kustomization " + within(labels[fluxKustomization+"namespace"], name)}, true
	}
	if name := labels[fluxHelmRelease+"name"]; name != "" {
		return Manager{"Flux", "HelmRelease " + within(labels[fluxHelmRelease+"namespace"], name)}, true
	}
	if app := tracked(object); app != "" {
		return Manager{"Argo CD", "Application " + app}, true
	}
	if app := labels[argoInstance]; app != "" {
		return Manager{"Argo CD", "Application " + app}, true
	}
	for _, entry := range object.GetManagedFields() {
		// One that owns no part of the spec has no say in it.
		if tool := fieldManagers[entry.Manager]; tool != "" && entry.Subresource == "" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
			return Manager{Tool: tool}, true
		}
	}
	return Manager{}, false
}

func within(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// tracked is the application that an object is tracked for. A tracking id is
// application:group/kind:namespace/name. One of another object came along with
// a copy, and Argo CD does not heed it.
func tracked(object metav1.Object) string {
	app, of, ok := strings.Cut(object.GetAnnotations()[argoTracking], ":")
	if !ok || !strings.HasSuffix(of, "/"+object.GetName()) {
		return ""
	}
	return strings.Replace(app, "_", "/", 1) // of an application outside Argo CD's own namespace
}

// String is the manager in words, such as "Flux (Kustomization teams)".
func (m Manager) String() string {
	if m.Source == "" {
		return m.Tool
	}
	return fmt.Sprintf("%s (%s)", m.Tool, m.Source)
}

// Sentence says why what is called that is not changed here, and where instead.
func (m Manager) Message(what string) string {
	return fmt.Sprintf("%s is managed by %s. Change it in its Git repository: changes made here would be reverted.", what, m)
}

// Refuse is an error for who tries to change such an object; nil for one that
// nobody else manages.
func CheckUnmanaged(object metav1.Object, op, what string) error {
	m, managed := ManagerOf(object)
	if !managed {
		return nil
	}
	return &governance.Error{Kind: governance.Forbidden, Op: op, Message: m.Message(what) + " Nothing was changed."}
}
