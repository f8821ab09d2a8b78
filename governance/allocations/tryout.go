package allocations

import (
	"context"
	"maps"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tryLimit is how long a webhook may take over one object. Kueue's own limit of
// ten seconds is longer than people wait for a review.
const tryLimit = 3 * time.Second

// Trial is an object that would be written, to be tried without writing it.
type Trial struct {
	Piece
	// Marks are the labels and annotations that an object is wanted for, which
	// has no spec of ours; nil for the others.
	Marks map[string]string
	// Untried tells that it cannot be tried, since the namespace is not there yet.
	Untried bool
}

// Result is what came of a trial.
type Result struct {
	Change *ObjectChange           // nil when nothing would change
	Wrong  []governance.FieldError // why it was refused, with places in the object tried
	Silent bool                    // a webhook did not answer
}

// Try applies an object as the console itself would, as a dry run, and tells
// what would change.
func Try(ctx context.Context, c *cluster.Cluster, trial Trial) (Result, error) {
	if slices.Contains(c.Kinds().Kueue, trial.Kind) { // Kueue is not there to be asked
		return Result{Silent: true}, nil
	}
	err := c.Manager.GetAPIReader().Get(ctx, trial.Key, trial.Live)
	if client.IgnoreNotFound(err) != nil {
		return Result{}, cluster.Translate("read "+trial.Kind, err)
	}
	change := ObjectChange{Kind: trial.Kind, Name: trial.Key.Name, Action: Changed}
	var before any = trial.Live
	if apierrors.IsNotFound(err) {
		change.Action, before = Made, nil
	}
	if !trial.Untried {
		limited, cancel := context.WithTimeout(ctx, tryLimit)
		defer cancel()
		err := c.Manager.GetClient().Apply(limited, trial.Wanted, client.DryRunAll, client.ForceOwnership, client.FieldOwner(cluster.FieldManager))
		wrong, refused := Refusal(err)
		switch {
		case refused:
			return Result{Wrong: wrong}, nil
		case Silent(err), err != nil && limited.Err() != nil && ctx.Err() == nil:
			return Result{Silent: true}, nil
		case err != nil:
			return Result{}, cluster.Translate("try "+trial.Kind, err)
		}
	}
	if trial.Marks != nil {
		change.Fields = markChanges(trial.Live, trial.Marks)
	} else if change.Fields, err = fieldChanges(before, trial.Wanted); err != nil {
		return Result{}, &governance.Error{Op: "compare " + trial.Kind, Message: "The change cannot be encoded.", Err: err}
	}
	if change.Action == Changed && len(change.Fields) == 0 {
		return Result{}, nil
	}
	return Result{Change: &change}, nil
}

// trials are the namespace of an allocation and all other objects, in the order
// in which they are written.
func trials(objects desired.Objects, namespaceThere bool) []Trial {
	namespace := objects.Namespace
	marks := maps.Clone(namespace.Labels)
	maps.Copy(marks, namespace.Annotations)
	all := []Trial{{Piece: NewPiece("Namespace", &corev1.Namespace{}, namespace, namespace.ObjectMetaApplyConfiguration), Marks: marks}}
	for _, piece := range Pieces(objects) {
		all = append(all, Trial{Piece: piece, Untried: piece.Key.Namespace != "" && !namespaceThere})
	}
	return all
}
