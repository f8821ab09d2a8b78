package loopguard

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// firstHold is how long the first hold of a pair lasts at most. It ends as soon
	// as the preemptor is admitted.
	firstHold = time.Minute
	// longestHold bounds later holds of the same pair, which last 1, 2, 4 and then
	// always 8 minutes: releasing at the admission was not enough.
	longestHold = 8 * time.Minute
	// over is how long after its last preemption or release a loop is over.
	over = time.Minute
	// remembered is how long a loop that is over is remembered, so that another
	// preemption of the same pair is a repeat. It exceeds longestHold.
	remembered = 15 * time.Minute
)

// State is what a loop is doing.
type State string

// The states of a loop.
const (
	Looping  State = "Looping"  // Kueue preempts the victim again and again
	Held     State = "Held"     // the guard keeps the victim out of admission
	Released State = "Released" // the victim may be admitted again
	Over     State = "Over"     // no preemption for a minute
)

// Reason is why a loop is not broken.
type Reason string

// The reasons.
const (
	NoReason     Reason = ""
	WarnOnly     Reason = "Warn"        // the policy is Warn, or does not exist
	NotHoldable  Reason = "NotHoldable" // its kind loses more by a hold than time
	NotGoverned  Reason = "NotGoverned" // its queue is not managed by Kuota
	Overruled    Reason = "Overruled"   // a person stopped or resumed it during a hold
	OtherHeld    Reason = "OtherHeld"   // another workload of the same loop is held
	NotPermitted Reason = "Failed"      // the API server did not take the hold
)

// Party is a Workload of a loop.
type Party struct {
	UID             types.UID
	Namespace, Name string    // empty where the Workload is not known any more
	Kind            string    // of its owner; empty where it has none
	Service         types.UID // the Deployment that it is a replica of; empty for none
	ClusterQueue    string
}

// Loop is one workload that Kueue preempts again and again for another that it
// does not admit.
type Loop struct {
	Victim, Preemptor Party
	Rule              string    // Kueue's reason of the latest preemption, such as InCohortFairSharing
	Since, Last       time.Time // the first and the latest preemption, by Kueue, in whole seconds
	Detected          time.Time
	Preemptions       int32 // from Since until Last
	State             State
	NotHeld           Reason    // while Looping: why it is not broken
	Holds             int       // how often the guard held the victim
	HeldUntil         time.Time // while Held: it ends then at the latest
	Changed           time.Time // when State last changed
}

// Active reports whether the loop goes on, or the victim is held.
func (l Loop) Active() bool { return l.State == Looping || l.State == Held }

// loop is a Loop with what the guard needs to act on it.
type loop struct {
	Loop
	wanted    bool              // a preemption requires a hold
	mark      Mark              // of the hold that goes on, or of the last one
	markSeen  bool              // the watch has shown the mark
	first     bool              // the hold ends with the preemptor's admission
	holds     map[types.UID]int // by preemptor
	overruled time.Time         // until then the victim is left alone
	announced bool              // events and steps were written
	unseen    bool              // known only by the mark of another process, which saw the preemptions
}

// hold begins the hold of the mark.
func (l *loop) hold(now time.Time) {
	l.enter(Held, now)
	l.wanted, l.NotHeld = false, NoReason
	l.holds[l.mark.Preemptor]++
	l.Holds++
	l.HeldUntil = l.mark.Until
}

// holdFor returns how long a hold for a preemptor lasts at most, and whether it
// ends with the preemptor's admission.
func (l *loop) holdFor(preemptor types.UID) (limit time.Duration, first bool) {
	n := l.holds[preemptor]
	if n == 0 {
		return firstHold, true
	}
	return min(firstHold<<min(n-1, 10), longestHold), false
}

// byAge orders loops, those that go on first and the newest before older ones.
func byAge(loops []Loop) []Loop {
	slices.SortFunc(loops, func(a, b Loop) int {
		if a.Active() != b.Active() {
			if a.Active() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Detected.Compare(a.Detected), cmp.Compare(a.Victim.UID, b.Victim.UID))
	})
	return loops
}

// holdable are the kinds whose Workload can be deactivated and lose nothing but
// time: their controllers suspend the job and resume it. Kueue deletes the pods of
// all others, which do not come back, or serve users.
var holdable = []string{
	"Job", "JobSet", "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "TrainJob",
	"RayJob", "RayCluster", "AppWrapper", "SparkApplication", v1alpha1.ElasticJobKind,
}

// kindOf returns the kind of the controller of w; empty where it has none.
func kindOf(w *kueue.Workload) string {
	if o := metav1.GetControllerOfNoCopy(w); o != nil {
		return o.Kind
	}
	return ""
}

func partyOf(w *kueue.Workload, queue string) Party {
	return Party{UID: w.UID, Namespace: w.Namespace, Name: w.Name, Kind: kindOf(w), ClusterQueue: queue}
}

// ID identifies the loop and contains no name of a Workload.
func (l Loop) ID() string { return strconv.FormatInt(l.Detected.UnixNano(), 36) }

// Repeated reports whether the victim was held before for the same preemptor.
func (l Loop) Repeated() bool { return l.Holds > 1 }
