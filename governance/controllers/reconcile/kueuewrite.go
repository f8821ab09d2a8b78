package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/kueue/kueueconfig"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeConfiguration updates Kueue's configuration and restarts Kueue. If the
// console stops in between, the next reconciliation restarts Kueue, because the
// Deployment lacks the pending annotations.
func (r *KueueReconciler) writeConfiguration(ctx context.Context, policy *v1alpha1.ClusterPolicy, in installation, want kueueconfig.Desired) (kueueResult, error) {
	seen := in.status(want)
	switch stored, err := r.isCurrent(ctx, policy); {
	case err != nil:
		return applyPending(seen), err
	case !stored:
		return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Applying", "the policy changed; Kueue's configuration is being updated"), status: seen, requeueAfter: kueueRolloutInterval}, nil
	}
	differed, changes := want.ConfigChanged || want.ArgsChanged, want.Changes
	if want.ConfigChanged || !in.restartPending() {
		config := in.config.DeepCopy()
		config.Data[configKey] = want.Text
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, configurationAnnotation, newConfigurationID(want, config.ResourceVersion))
		if err := cluster.Update(ctx, r.APIReader, r, &in.config, config, fieldOwner); err != nil {
			return writeFailure(err, in, want)
		}
		in.config = *config
		if differed {
			r.noteAttempt(policy)
			differed = false
		}
		var err error
		if want, err = in.desired(&policy.Spec); err != nil { // only the arguments may be left
			return writeFailure(err, in, want)
		}
	}
	deployment := in.deployment.DeepCopy()
	for name, value := range in.pending() {
		metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, name, value)
	}
	r.annotateAttempts(&in, deployment)
	deployment.Spec.Template.Spec.Containers[in.managerIndex].Args = want.Args
	if err := cluster.Update(ctx, r.APIReader, r, &in.deployment, deployment, fieldOwner); err != nil {
		return writeFailure(err, in, want)
	}
	if differed {
		r.noteAttempt(policy)
	}
	KueueRestarts.Inc()
	ctrl.LoggerFrom(ctx).Info("changed Kueue's configuration or arguments, which restarts Kueue", "changes", changes)
	return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Restarting", "Kueue is restarting to use what changed; running tasks continue"), status: seen, requeueAfter: kueueRolloutInterval}, nil
}

// isCurrent reports whether a policy from the cache has the generation of the
// API server. After a stalled watch it is older, and writing it would revert
// what another console changed since.
func (r *KueueReconciler) isCurrent(ctx context.Context, policy *v1alpha1.ClusterPolicy) (bool, error) {
	var live v1alpha1.ClusterPolicy
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(policy), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == policy.UID && live.Generation == policy.Generation, nil
}

// writeFailure returns the result when Kueue's configuration cannot be updated,
// with the patch to apply by hand if the console has no permission.
func writeFailure(err error, in installation, want kueueconfig.Desired) (kueueResult, error) {
	seen := in.status(want)
	switch {
	case !apierrors.IsForbidden(err):
		return applyPending(seen), err
	case want.Patch == "":
		seen.Patch = in.restartPatch()
		return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue's configuration matches the policy, but Kueue must be restarted to use it: the console has no permission to change Deployment %s/%s", in.deployment.Namespace, in.deployment.Name), status: seen, requeueAfter: kueueInterval}, nil
	}
	seen.Patch = want.Patch
	return kueueResult{condition: kueueCondition(metav1.ConditionFalse, "Differs", "Kueue does not match the policy, and the console has no permission to change Kueue's configuration: %s", strings.Join(want.Changes, "; ")), status: seen, requeueAfter: kueueInterval}, nil
}

func applyPending(seen *v1alpha1.KueueStatus) kueueResult {
	return kueueResult{condition: kueueCondition(metav1.ConditionUnknown, "Applying", "Kueue's configuration cannot be changed yet, retrying"), status: seen}
}

// newConfigurationID returns the ID of one write of a configuration. The
// resourceVersion makes IDs of the same text differ, so that a text that was
// reverted and written again restarts Kueue again.
func newConfigurationID(want kueueconfig.Desired, resourceVersion string) string {
	sum := sha256.Sum256([]byte(want.Text + "\x00" + strings.Join(want.Args, "\x00") + "\x00" + resourceVersion))
	return hex.EncodeToString(sum[:8])
}

const (
	// attemptsAnnotation is on Kueue's Deployment: the latest attempts to make Kueue match
	// the policy, so that another replica knows them.
	attemptsAnnotation = "kuota.dev/attempts"
	// maxAttempts is how many follow one another while they are reverted.
	maxAttempts = 2
	// attemptInterval is the time between further ones, and the time in which Kueue is
	// restarted at most maxRestarts times, but for a change of the policy.
	attemptInterval = time.Hour
	maxRestarts     = 3
	keptAttempts    = 10
)

// KueueRestarts counts how often this console has restarted Kueue.
var KueueRestarts = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "kuota_kueue_restarts_total", Help: "Restarts of Kueue by this console, because Kueue reads its configuration at startup only.",
})

// attempt is one time that Kueue's configuration or arguments were changed.
type attempt struct {
	Policy     types.UID `json:"policy"`
	Generation int64     `json:"generation"` // of the policy
	Time       time.Time `json:"time"`
}

// attemptsOn returns the attempts that a Deployment lists.
func attemptsOn(deployment metav1.Object) (list []attempt) {
	_ = json.Unmarshal([]byte(deployment.GetAnnotations()[attemptsAnnotation]), &list) // it may have been edited
	return list
}

// merged returns attempts of two lists by time, the latest keptAttempts of them.
func merged(a, b []attempt) []attempt {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b attempt) int { return a.Time.Compare(b.Time) })
	all = slices.CompactFunc(all, func(a, b attempt) bool { return a.Time.Equal(b.Time) })
	return all[max(0, len(all)-keptAttempts):]
}

// nextAttempt returns when Kueue may be changed again for this generation of a policy, and
// how many attempts there were. The first one after a change of the policy, or after a
// person asked for one, is at once.
func nextAttempt(all []attempt, policy *v1alpha1.ClusterPolicy, now time.Time) (at time.Time, attempts int) {
	asked, _ := time.Parse(time.RFC3339, policy.Annotations[v1alpha1.AnnotationTryAgain])
	if asked.After(now) { // until then it would allow any number
		asked = time.Time{}
	}
	var mine, recent []attempt
	for _, a := range all {
		if a.Policy == policy.UID && a.Generation == policy.Generation && a.Time.After(asked) {
			mine = append(mine, a)
		}
		if now.Sub(a.Time) < attemptInterval {
			recent = append(recent, a)
		}
	}
	switch {
	case len(mine) == 0:
		return now, 0
	case len(mine) >= maxAttempts && now.Sub(mine[len(mine)-1].Time) < attemptInterval:
		return mine[len(mine)-1].Time.Add(attemptInterval), len(mine)
	case len(recent) >= maxRestarts:
		return recent[len(recent)-maxRestarts].Time.Add(attemptInterval), len(mine)
	}
	return now, len(mine)
}

// attempts returns the known attempts.
func (r *KueueReconciler) attempts(in *installation) []attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return merged(r.made, attemptsOn(&in.deployment))
}

// noteAttempt notes an attempt that was made.
func (r *KueueReconciler) noteAttempt(policy *v1alpha1.ClusterPolicy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = merged(r.made, []attempt{{policy.UID, policy.Generation, r.Now().UTC().Truncate(time.Millisecond)}})
}

// annotateAttempts writes the known attempts on a Deployment that is about to be updated.
func (r *KueueReconciler) annotateAttempts(in *installation, deployment *appsv1.Deployment) {
	if all := r.attempts(in); len(all) > 0 {
		text, _ := json.Marshal(all)
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, attemptsAnnotation, string(text))
	}
}

// mayWrite returns why Kueue must not be changed now; ok is true if it may.
func (r *KueueReconciler) mayWrite(policy *v1alpha1.ClusterPolicy, in *installation, want *kueueconfig.Desired) (why metav1.Condition, ok bool) {
	changes := strings.Join(want.Changes, "; ")
	if owner := in.owner(); owner != "" {
		return kueueCondition(metav1.ConditionFalse, "ManagedElsewhere", "Kueue does not match the policy, and its configuration is managed by %s, which would revert a change. Change it there: %s", owner, changes), false
	}
	now := r.Now()
	at, attempts := nextAttempt(r.attempts(in), policy, now)
	if at.After(now) {
		return kueueCondition(metav1.ConditionFalse, "Reverted", "another writer%s changed Kueue's configuration back after %d of Kuota's changes; the next one is at %s: %s", in.otherWriter(), attempts, at.UTC().Format("15:04 UTC"), changes), false
	}
	return metav1.Condition{}, true
}

// owner returns who applies Kueue's configuration or its Deployment again and again: a
// GitOps tool, or an operator. Empty for none.
func (in *installation) owner() string {
	for _, o := range []client.Object{&in.config, &in.deployment} {
		if m, ok := gitops.ManagerOf(o); ok {
			return m.String()
		}
		if c := metav1.GetControllerOf(o); c != nil {
			return fmt.Sprintf("%s %s", c.Kind, c.Name)
		}
	}
	return ""
}

// otherWriter returns the field manager that wrote Kueue's configuration last, besides
// Kuota, as a part of a sentence.
func (in *installation) otherWriter() string {
	name, last := "", time.Time{}
	for _, e := range in.config.ManagedFields {
		if e.Manager != string(fieldOwner) && e.FieldsV1 != nil && e.Time != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+configKey+`"`) && !e.Time.Time.Before(last) {
			name, last = ", "+e.Manager+",", e.Time.Time
		}
	}
	return name
}
