package allocations

import (
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Piece is one object that follows from an allocation, as it should be.
type Piece struct {
	Kind     string
	Key      client.ObjectKey
	Live     client.Object // an empty object of its kind, to read the present one into
	Wanted   runtime.ApplyConfiguration
	Metadata *applymeta.ObjectMetaApplyConfiguration // of Wanted
}

// NewPiece is a piece of the given kind.
func NewPiece(kind string, live client.Object, want runtime.ApplyConfiguration, metadata *applymeta.ObjectMetaApplyConfiguration) Piece {
	key := client.ObjectKey{Name: *metadata.Name}
	if metadata.Namespace != nil {
		key.Namespace = *metadata.Namespace
	}
	return Piece{kind, key, live, want, metadata}
}

// Pieces lists what follows from an allocation beside its namespace, in the
// order in which it is written. Nobody may submit before the queue is there, so
// members come last.
func Pieces(objects desired.Objects) []Piece {
	var all []Piece
	for _, flavor := range objects.Flavors {
		all = append(all, NewPiece("ResourceFlavor", &kueue.ResourceFlavor{}, flavor, flavor.ObjectMetaApplyConfiguration))
	}
	queue, local := objects.ClusterQueue, objects.LocalQueue
	all = append(all, NewPiece("ClusterQueue", &kueue.ClusterQueue{}, queue, queue.ObjectMetaApplyConfiguration))
	if o := objects.Defaults; o != nil { // before the ceiling, which refuses pods that say nothing
		all = append(all, NewPiece("LimitRange", &corev1.LimitRange{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Ceiling; o != nil {
		all = append(all, NewPiece("ResourceQuota", &corev1.ResourceQuota{}, o, o.ObjectMetaApplyConfiguration))
	}
	all = append(all, NewPiece("LocalQueue", &kueue.LocalQueue{}, local, local.ObjectMetaApplyConfiguration))
	if o := objects.DefaultQueue; o != nil {
		all = append(all, NewPiece("LocalQueue", &kueue.LocalQueue{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Members; o != nil {
		all = append(all, NewPiece("RoleBinding", &rbacv1.RoleBinding{}, o, o.ObjectMetaApplyConfiguration))
	}
	return all
}

// Optional lists what an allocation may have in its namespace and need not, in
// the order in which it is taken away: who submits, where to, and what bounds
// it. Nothing of it is wanted any more where Pieces does not have it.
func Optional(namespace string) []Piece {
	piece := func(kind, name string, live client.Object) Piece {
		return Piece{Kind: kind, Key: client.ObjectKey{Namespace: namespace, Name: name}, Live: live}
	}
	return []Piece{
		piece("RoleBinding", desired.MembersName, &rbacv1.RoleBinding{}),
		piece("LocalQueue", desired.DefaultQueueName, &kueue.LocalQueue{}),
		piece("ResourceQuota", desired.CeilingName, &corev1.ResourceQuota{}),
		piece("LimitRange", desired.CeilingName, &corev1.LimitRange{}),
	}
}

// Unwanted lists what an allocation does not ask for, or not any more.
func Unwanted(objects desired.Objects) []Piece {
	wanted := map[string]bool{}
	for _, piece := range Pieces(objects) {
		wanted[piece.Kind+" "+piece.Key.Name] = true
	}
	var unwanted []Piece
	for _, piece := range Optional(*objects.Namespace.GetName()) {
		if !wanted[piece.Kind+" "+piece.Key.Name] {
			unwanted = append(unwanted, piece)
		}
	}
	return unwanted
}
