package gitops_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/gitops"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func owner(manager, subresource, fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}}
}

func TestManager(t *testing.T) {
	const spec = `{"f:spec":{"f:quota":{}}}`
	for name, tc := range map[string]struct {
		object metav1.ObjectMeta
		want   string // empty for none
	}{
		"applied by Kustomize of Flux": {metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "teams", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}, "Flux (Kustomization flux-system/teams)"},
		"applied by Helm of Flux":      {metav1.ObjectMeta{Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "teams"}}, "Flux (HelmRelease teams)"},
		"tracked by Argo CD":           {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "teams:kuota.dev/ComputeAllocation:argocd/vision"}}, "Argo CD (Application teams)"},
		"of an application elsewhere":  {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "ml_teams:kuota.dev/ComputeAllocation:argocd/vision"}}, "Argo CD (Application ml/teams)"},
		"labelled by Argo CD":          {metav1.ObjectMeta{Labels: map[string]string{"argocd.argoproj.io/instance": "teams"}}, "Argo CD (Application teams)"},
		"fields of Flux":               {metav1.ObjectMeta{ManagedFields: owner("kustomize-controller", "", spec)}, "Flux"},
		"fields of Flux's Helm":        {metav1.ObjectMeta{ManagedFields: owner("helm-controller", "", spec)}, "Flux"},
		"fields of Argo CD":            {metav1.ObjectMeta{ManagedFields: owner("argocd-controller", "", spec)}, "Argo CD"},
		"fields of an older Argo CD":   {metav1.ObjectMeta{ManagedFields: owner("argocd-application-controller", "", spec)}, "Argo CD"},

		"unmanaged":                     {metav1.ObjectMeta{}, ""},
		"of kubectl and the console":    {metav1.ObjectMeta{ManagedFields: owner("kuota-console", "", spec)}, ""},
		"only labels are Flux's":        {metav1.ObjectMeta{ManagedFields: owner("kustomize-controller", "", `{"f:metadata":{}}`)}, ""},
		"only the status is Flux's":     {metav1.ObjectMeta{ManagedFields: owner("kustomize-controller", "status", spec)}, ""},
		"without fields":                {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller"}}}, ""},
		"a tracking id that was copied": {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "teams:kuota.dev/ComputeAllocation:argocd/other"}}, ""},
		"an invalid tracking id":        {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "vision"}}, ""},
		"an instance of Helm":           {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/instance": "teams"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.object.Name = "vision"
			got, ok := gitops.ManagerOf(&tc.object)
			if ok != (tc.want != "") || got.String() != tc.want {
				t.Errorf("managed by %q, want %q", got, tc.want)
			}
			err := gitops.CheckUnmanaged(&tc.object, "update", "Team vision")
			if (err != nil) != ok {
				t.Fatalf("refused: %v", err)
			}
			if err != nil && (governance.KindOf(err) != governance.Forbidden || !strings.Contains(err.Error(), "Team vision is managed by "+tc.want)) {
				t.Errorf("refused with %v", err)
			}
		})
	}
}
