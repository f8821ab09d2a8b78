package uninstall

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/controllers/loopguard"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// oddCluster rejects each patch of an object of the name odd.
type oddCluster struct {
	client.Client
	patched []string
}

func (o *oddCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	mark := loopguard.Mark{Identity: "a", Preemptor: "x", Until: time.Now().Add(time.Hour)}.String()
	metadata := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Finalizers: []string{"kuota.dev/a"}, Annotations: map[string]string{loopguard.MarkAnnotation: mark}}
	}
	switch list := list.(type) {
	case *kueue.WorkloadList:
		list.Items = []kueue.Workload{{ObjectMeta: metadata("odd")}, {ObjectMeta: metadata("behind")}}
	case *metav1.PartialObjectMetadataList:
		if list.Kind != "ElasticJobList" {
			return &meta.NoKindMatchError{}
		}
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metadata("odd")}, {ObjectMeta: metadata("behind")}}
	}
	return nil
}

func (o *oddCluster) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (o *oddCluster) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if object.GetName() == "odd" {
		return errors.New("rejected")
	}
	o.patched = append(o.patched, object.GetName())
	return nil
}

// An object that cannot be changed keeps no other one held or with a finalizer.
func TestOddObjects(t *testing.T) {
	for name, step := range map[string]func(uninstaller, context.Context) error{
		"held Workloads": uninstaller.releaseWorkloads, "finalizers": uninstaller.finalizers,
	} {
		c := &oddCluster{}
		err := step(uninstaller{Client: c, Options: Options{Out: io.Discard}}, t.Context())
		if err == nil || !slices.Equal(c.patched, []string{"behind"}) {
			t.Errorf("%s: changed %v with error %v, want the other object and an error", name, c.patched, err)
		}
	}
}
