package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"kuota.dev/kuota/cli"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/allocations"
	"kuota.dev/kuota/handlers/policy"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// importApply saves what kuota import reads.
type importApply struct {
	save     *cli.Applier
	messages io.Writer
}

// all saves objects, each as a whole or not at all: the policy first, because allocations name its
// pools, and tasks last, because they need the queue of an allocation. skipped is how many could not be
// read.
func (a importApply) all(ctx context.Context, objects []imports.Object, skipped int) error {
	order := []string{"policy", "allocation", "elasticjob"}
	slices.SortStableFunc(objects, func(x, y imports.Object) int {
		first, _ := importNames(x)
		second, _ := importNames(y)
		return cmp.Compare(slices.Index(order, first), slices.Index(order, second))
	})
	failed, total := skipped, len(objects)+skipped
	for _, o := range objects {
		_, name := importNames(o)
		fmt.Fprintf(a.messages, "%s:\n", name)
		err := a.one(ctx, o)
		switch {
		case err == nil:
			continue
		case total == 1 || ctx.Err() != nil:
			return err
		}
		failed++
		fmt.Fprintln(a.messages, err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d objects were not saved", failed, total)
	}
	return nil
}

// one saves an object.
func (a importApply) one(ctx context.Context, o imports.Object) error {
	switch {
	case o.Policy != nil:
		return a.save.Policy(ctx, func(found []byte) (any, error) { return a.policy(o, found) })
	case o.ElasticJob != nil:
		return a.save.Task(ctx, o.ElasticJob.Labels[constants.QueueLabel], o.ElasticJob.Namespace, o.YAML())
	}
	return a.save.Allocation(ctx, o.Allocation.Name, func(found []byte) (any, error) { return a.allocation(o, found) })
}

// allocation returns the allocation that is saved in place of found.
func (a importApply) allocation(o imports.Object, found []byte) (*v1alpha1.ComputeAllocation, error) {
	wanted := o.Allocation.DeepCopy()
	if found != nil {
		var now v1alpha1.ComputeAllocation
		if err := readFound(found, &now); err != nil {
			return nil, err
		}
		wanted = allocations.Overlaid(&now, o)
		if ns := o.Allocation.Spec.Namespace; ns != "" && ns != wanted.Spec.Namespace {
			fmt.Fprintln(a.messages, "spec.namespace: a team keeps its namespace; left out")
		}
	} else if wanted.Spec.Adopted() {
		return nil, errors.New("it describes an existing ClusterQueue; adopt that with kuota adopt, or apply the YAML with kubectl")
	}
	wanted.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: manifest.KindAllocation}
	return wanted, nil
}

// policy returns the policy that is saved in place of found.
func (a importApply) policy(o imports.Object, found []byte) (*v1alpha1.ClusterPolicy, error) {
	wanted := o.Policy.DeepCopy()
	if found != nil {
		var now v1alpha1.ClusterPolicy
		if err := readFound(found, &now); err != nil {
			return nil, err
		}
		wanted = policy.Overlaid(&now, o)
		if o.SharingUnspecified && now.Spec.IdleCompute.ShareUnallocated {
			fmt.Fprintln(a.messages, "IdleResourceSharing: is missing, so saving turns off lending of unallocated compute")
		}
	}
	wanted.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: manifest.KindPolicy}
	return wanted, nil
}

// readFound reads an object of the console. Saving it would delete fields that are not known here, so
// that these are an error.
func readFound(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the answer of the console is not understood, and saving would lose a part of it; is this kuota of its version? %w", err)
	}
	return nil
}
