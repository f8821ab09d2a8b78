package gitops

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"kuota.dev/kuota/governance"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Manager is the GitOps tool that applies an object from a repository.
type Manager struct {
	Tool   string // "Flux" or "Argo CD"
	Source string // the resource of the tool, such as "Kustomization flux-system/teams"; empty if unknown
}

// The labels and annotations that Flux and Argo CD set. The default label of older
// versions of Argo CD, app.kubernetes.io/instance, is not one of them: Helm sets it
// too.
const (
	fluxKustomization = "kustomize.toolkit.fluxcd.io/"
	fluxHelmRelease   = "helm.toolkit.fluxcd.io/"
	argoTracking      = "argocd.argoproj.io/tracking-id"
	argoInstance      = "argocd.argoproj.io/instance"
)

// fieldManagers maps field managers to their tool.
var fieldManagers = map[string]string{
	"kustomize-controller":          "Flux",
	"helm-controller":               "Flux",
	"argocd-controller":             "Argo CD",
	"argocd-application-controller": "Argo CD",
}

// ManagerOf returns the manager of an object. ok is false if it has none.
func ManagerOf(object metav1.Object) (m Manager, ok bool) {
	labels := object.GetLabels()
	for _, flux := range []struct{ kind, labels string }{{"Kustomization ", fluxKustomization}, {"HelmRelease ", fluxHelmRelease}} {
		if name := labels[flux.labels+"name"]; name != "" {
			return Manager{"Flux", flux.kind + path.Join(labels[flux.labels+"namespace"], name)}, true
		}
	}
	if app := cmp.Or(tracked(object), labels[argoInstance]); app != "" {
		return Manager{"Argo CD", "Application " + app}, true
	}
	for _, entry := range object.GetManagedFields() {
		// A tool that owns no field of the spec, or of the data, does not revert it.
		if tool := fieldManagers[entry.Manager]; tool != "" && entry.Subresource == "" && entry.FieldsV1 != nil && (strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) || strings.Contains(entry.FieldsV1.GetRawString(), `"f:data"`)) {
			return Manager{Tool: tool}, true
		}
	}
	return Manager{}, false
}

// tracked returns the Argo CD application that tracks an object. A tracking ID is
// application:group/kind:namespace/name. Argo CD ignores the ID of another object,
// which a copied object may have.
func tracked(object metav1.Object) string {
	app, of, ok := strings.Cut(object.GetAnnotations()[argoTracking], ":")
	if !ok || !strings.HasSuffix(of, "/"+object.GetName()) {
		return ""
	}
	return strings.Replace(app, "_", "/", 1) // namespace_application outside Argo CD's own namespace
}

// String returns text such as "Flux (Kustomization teams)".
func (m Manager) String() string {
	if m.Source == "" {
		return m.Tool
	}
	return fmt.Sprintf("%s (%s)", m.Tool, m.Source)
}

// Message returns a sentence that object what is changed in its Git repository.
func (m Manager) Message(what string) string {
	return fmt.Sprintf("%s is managed by %s. Change it in its Git repository: changes made here would be reverted.", what, m)
}

// CheckUnmanaged returns governance.Forbidden if an object has a manager. op and
// what name the operation and the object in the error.
func CheckUnmanaged(object metav1.Object, op, what string) error {
	m, managed := ManagerOf(object)
	if !managed {
		return nil
	}
	return &governance.Error{Kind: governance.Forbidden, Op: op, Message: m.Message(what) + " Nothing was changed."}
}
