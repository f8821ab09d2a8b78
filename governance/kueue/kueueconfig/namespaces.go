package kueueconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// ManagedNamespaces returns the selector of the namespaces whose jobs Kueue
// manages: managedJobsNamespaceSelector. Without one, Kueue excludes only
// kube-system and its own namespace. Since 0.15 Kueue ignores all jobs of other
// namespaces, whether they name a queue or not.
func ManagedNamespaces(text string) (labels.Selector, error) {
	var file struct {
		Selector *metav1.LabelSelector `json:"managedJobsNamespaceSelector"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil, invalid(err, "Kueue's managedJobsNamespaceSelector cannot be read.")
	}
	if file.Selector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(file.Selector)
	if err != nil {
		return nil, invalid(err, "Kueue's managedJobsNamespaceSelector is not a label selector.")
	}
	return selector, nil
}
