package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/change"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// fieldOwner is the field manager of everything that the controllers apply.
const fieldOwner = client.FieldOwner(cluster.FieldManager)

// applier applies desired objects.
type applier struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
}

// apply applies one object unless it is up to date, and returns the change by
// another field manager that this reverted, if any. Set live if the cache may
// not have Kuota's last write yet: the object is then read from the API server.
func (a applier) apply(ctx context.Context, piece managed.Object, live bool) (*v1alpha1.Correction, error) {
	key := piece.Key
	reader := client.Reader(a.Client)
	if live {
		reader = a.APIReader
	}
	if err := client.IgnoreNotFound(reader.Get(ctx, key, piece.Live)); err != nil {
		return nil, err
	}
	keepNotation(piece)
	noteOrder(piece, time.Now())
	want, err := toFields(piece.Desired)
	if err != nil {
		return nil, err
	}
	if upToDate(piece.Live, want) || piece.Live.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	// The cache may still show a change that was already reverted, so the object is
	// read from the API server. An object that does not exist is applied without
	// force: if another manager just created it, that is a conflict, and the next
	// reconciliation reports it.
	exists := piece.Live.GetName() != ""
	if exists && !live {
		err := a.APIReader.Get(ctx, key, piece.Live)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if exists = err == nil; exists {
			noteOrder(piece, time.Now())
			if want, err = toFields(piece.Desired); err != nil || upToDate(piece.Live, want) {
				return nil, err
			}
		}
	}
	options := []client.ApplyOption{fieldOwner}
	if exists {
		if !managed.ByKuota(piece.Live) {
			if err := checkTakeover(piece); err != nil {
				return nil, err
			}
			piece.Metadata.WithResourceVersion(piece.Live.GetResourceVersion())
		}
		options = append(options, client.ForceOwnership)
	}
	digest := piece.Metadata.Annotations[desired.AnnotationDesired]
	if err := a.Apply(ctx, piece.Desired, options...); err != nil { // writes the response into Desired and Metadata
		return nil, fmt.Errorf("%s %s: %w", piece.Kind, key.Name, err)
	}
	if without := extraFieldsPatch(piece.Live, want); without != "" {
		stray, _ := piece.Live.DeepCopyObject().(client.Object)
		if err := a.Patch(ctx, stray, client.RawPatch(types.MergePatchType, []byte(without))); err != nil {
			return nil, fmt.Errorf("%s %s: %w", piece.Kind, key.Name, err)
		}
	}
	return correctionOf(piece.Kind, piece.Live, digest), nil
}

// correctionOf returns the correction if another manager changed an object
// after Kuota had applied the same desired state, and nil otherwise. digest is
// that of the desired state.
func correctionOf(kind string, before client.Object, digest string) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != digest {
		return nil
	}
	manager, changed := lastManager(before)
	return &v1alpha1.Correction{Object: objectName(kind, before.GetName()), Manager: manager, Time: changed}
}

// lastManager returns the manager that last changed the object except its
// status, other than Kuota's applies, and the time of that change.
func lastManager(object client.Object) (string, metav1.Time) {
	manager, changed := "an unknown manager", metav1.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		if entry.Manager == cluster.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		if changed.IsZero() || changed.Before(entry.Time) {
			manager, changed = entry.Manager, *entry.Time
		}
	}
	if changed.IsZero() {
		changed = object.GetCreationTimestamp()
	}
	return manager, changed
}

// checkTakeover returns a conflict unless Kuota may take over an existing object of
// another owner: the allocation or the policy names it, and describes the spec that it
// has.
func checkTakeover(piece managed.Object) error {
	if !piece.TakesOver {
		return errCreatedByAnother(piece)
	}
	if cohort, is := piece.Live.(*kueue.Cohort); is {
		if want, _ := piece.Desired.(*applykueue.CohortApplyConfiguration); !desired.SameCohort(want, cohort) {
			return errCreatedByAnother(piece)
		}
		return nil
	}
	changed, err := change.Applied(piece.Live, piece.Desired)
	if err == nil && len(changed) > 0 {
		err = errCreatedByAnother(piece)
	}
	return err
}

// errCreatedByAnother returns a conflict, which is retried: another manager created
// or changed the object after the check for conflicts, so that Kuota must not take it
// over. The next reconciliation reports it.
func errCreatedByAnother(piece managed.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: piece.Kind}, piece.Key.Name, errors.New("it was created or changed in the meantime"))
}

// keepNotation changes the desired fields to the notation of the live object where they
// are equal: 36G for 36000000000, or no description for an empty one. Applying the others
// would change the text of the spec and nothing else.
func keepNotation(piece managed.Object) {
	switch want := piece.Desired.(type) {
	case *applykueue.ClusterQueueApplyConfiguration:
		if live, ok := piece.Live.(*kueue.ClusterQueue); ok {
			keepQuantities(want, live)
		}
	case *applykueue.CohortApplyConfiguration:
		if live, ok := piece.Live.(*kueue.Cohort); ok && live.Name != "" && desired.SameCohort(want, live) {
			keepCohort(want, live)
		}
	case *applykueue.WorkloadPriorityClassApplyConfiguration:
		if live, ok := piece.Live.(*kueue.WorkloadPriorityClass); ok && live.Description == "" && ptr.Deref(want.Description, "") == "" {
			want.Description = nil
		}
	}
}

// keepCohort replaces a spec by one that means the same.
func keepCohort(want *applykueue.CohortApplyConfiguration, live *kueue.Cohort) {
	spec, err := json.Marshal(live.Spec)
	if err != nil {
		return // which then has another notation
	}
	same := &applykueue.CohortSpecApplyConfiguration{}
	if json.Unmarshal(spec, same) == nil {
		want.Spec = same
	}
}

// keepQuantities replaces desired quantities by those of the live ClusterQueue that are
// equal.
func keepQuantities(want *applykueue.ClusterQueueApplyConfiguration, live *kueue.ClusterQueue) {
	if want.Spec == nil {
		return
	}
	keep := func(want, live *resource.Quantity) {
		if want != nil && live != nil && want.Cmp(*live) == 0 {
			*want = live.DeepCopy()
		}
	}
	quotas := maps.Collect(quota.ResourceQuotas(live.Spec.ResourceGroups))
	for g := range want.Spec.ResourceGroups {
		for f := range want.Spec.ResourceGroups[g].Flavors {
			flavor := &want.Spec.ResourceGroups[g].Flavors[f]
			for i := range flavor.Resources {
				amount := &flavor.Resources[i]
				if has := quotas[quota.FlavorResource{Flavor: string(*flavor.Name), Resource: string(*amount.Name)}]; has != nil {
					keep(amount.NominalQuota, &has.NominalQuota)
					keep(amount.BorrowingLimit, has.BorrowingLimit)
					keep(amount.LendingLimit, has.LendingLimit)
				}
			}
		}
	}
	switch weight := live.Spec.FairSharing; {
	case weight == nil || weight.Weight == nil:
	case want.Spec.FairSharing != nil:
		keep(want.Spec.FairSharing.Weight, weight.Weight)
	default: // the default weight, which only an apply of it sets if another manager owns the field too
		want.Spec.WithFairSharing(applykueue.FairSharing().WithWeight(*resource.NewQuantity(desired.DefaultWeight, resource.DecimalSI)))
		keep(want.Spec.FairSharing.Weight, weight.Weight)
	}
}

// upToDate reports whether an object has all desired fields and no extra ones.
// Kueue updates the status of its queues many times a minute, and each update
// triggers a reconciliation. Nothing is sent while the desired fields are
// unchanged.
func upToDate(object client.Object, want map[string]any) bool {
	if object.GetName() == "" {
		return false
	}
	if extraFieldsPatch(object, want) != "" {
		return false
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return err == nil && covers(have, want)
}

// toFields returns an apply configuration as JSON fields, without kind and
// version, which objects from the cache do not have.
func toFields(object runtime.ApplyConfiguration) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields, err
}

// covers reports whether have contains every field of want with its value.
// Lists must be equal: those of Kueue and Kubernetes are atomic.
func covers(have, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want) || have == nil && isEmpty(want)
	}
	present, _ := have.(map[string]any)
	for name, value := range fields {
		if !covers(present[name], value) {
			return false
		}
	}
	return true
}

// isEmpty reports whether a value is omitted when it is encoded.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}
