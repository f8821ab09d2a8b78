package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is kuota.dev/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "kuota.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterPolicy{}, &ClusterPolicyList{},
		&ComputeAllocation{}, &ComputeAllocationList{},
		&Department{}, &DepartmentList{},
		&ElasticJob{}, &ElasticJobList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
