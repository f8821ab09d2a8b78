package managed

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/spec/change"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dryRunTimeout bounds the dry run of one object. Kueue's webhooks have a timeout
// of 10 s, which is longer than a reader waits for a review.
const dryRunTimeout = 3 * time.Second

// DryRunInput is an object to apply as a dry run.
type DryRunInput struct {
	Object
	// MetadataOnly are the desired labels and annotations of an object that has no
	// spec of Kuota's; nil for all others. Only these are compared then.
	MetadataOnly map[string]string
	// SkipApply reports that the object cannot be applied, because its namespace
	// does not exist yet. It is only compared then.
	SkipApply bool
	// Partial reports that fields that Desired does not set stay.
	Partial bool
}

// DryRunResult is the outcome of a dry run.
type DryRunResult struct {
	Change             *change.Object          // nil if nothing would change
	Rejected           []governance.FieldError // what was rejected, with paths in the object
	WebhookUnavailable bool                    // a webhook did not answer
}

// DryRun applies an object as the console, as a dry run, and returns what would
// change.
func DryRun(ctx context.Context, c *cluster.Cluster, in DryRunInput) (DryRunResult, error) {
	if slices.Contains(c.MissingKinds().Kueue, in.Kind) { // the kind is not served: Kueue is not installed
		return DryRunResult{WebhookUnavailable: true}, nil
	}
	err := c.Manager.GetAPIReader().Get(ctx, in.Key, in.Live)
	if client.IgnoreNotFound(err) != nil {
		return DryRunResult{}, cluster.Translate("read "+in.Kind, err)
	}
	result := change.Object{Kind: in.Kind, Name: in.Key.Name, Action: change.Changed}
	var before any = in.Live
	if apierrors.IsNotFound(err) {
		result.Action, before = change.Created, nil
	}
	if !in.SkipApply {
		limited, cancel := context.WithTimeout(ctx, dryRunTimeout)
		defer cancel()
		err := c.Manager.GetClient().Apply(limited, in.Desired, client.DryRunAll, client.ForceOwnership, client.FieldOwner(cluster.FieldManager))
		rejected, ok := rejection.Fields(err)
		switch {
		case ok:
			return DryRunResult{Rejected: rejected}, nil
		case rejection.WebhookUnavailable(err), err != nil && limited.Err() != nil && ctx.Err() == nil:
			return DryRunResult{WebhookUnavailable: true}, nil
		case err != nil:
			return DryRunResult{}, cluster.Translate("try "+in.Kind, err)
		}
	}
	if in.MetadataOnly != nil {
		result.Fields = change.Metadata(in.Live, in.MetadataOnly)
	} else if result.Fields, err = differences(in, before); err != nil {
		return DryRunResult{}, &governance.Error{Op: "compare " + in.Kind, Message: "The change cannot be encoded.", Err: err}
	}
	if result.Action == change.Changed && len(result.Fields) == 0 {
		return DryRunResult{}, nil
	}
	return DryRunResult{Change: &result}, nil
}

// differences returns the fields that applying an object changes. before is nil for
// an object that does not exist.
func differences(in DryRunInput, before any) ([]change.Field, error) {
	if in.Partial && before != nil {
		return change.Applied(in.Live, in.Desired)
	}
	return change.Fields(before, in.Desired)
}
