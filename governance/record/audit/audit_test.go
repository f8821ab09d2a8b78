package audit

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"

	corev1 "k8s.io/api/core/v1"
)

// Activity has the reason that the form of a spec sends as an annotation, and no reason of
// an earlier change. Each spec has the id of its version, and other changes have none.
func TestReasonAndID(t *testing.T) {
	saved := &v1alpha1.ComputeAllocation{}
	saved.UID, saved.Generation = "u1", 3
	v1alpha1.SetReason(saved, "more GPUs")
	unexplained := &v1alpha1.ComputeAllocation{ObjectMeta: *saved.ObjectMeta.DeepCopy()}
	unexplained.Annotations = nil
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: saved.ObjectMeta}
	pod := &corev1.Pod{ObjectMeta: saved.ObjectMeta}
	for name, tc := range map[string]struct {
		change         Change
		reason, wantID string
	}{
		"created":                    {Change{Action: Create, Object: saved, New: saved.Spec}, "more GPUs", history.ChangeID("u1", 3)},
		"changed":                    {Change{Action: Update, Object: saved, New: saved.Spec}, "more GPUs", history.ChangeID("u1", 3)},
		"held":                       {Change{Action: Hold, Object: saved, New: saved.Spec}, "more GPUs", history.ChangeID("u1", 3)},
		"the policy":                 {Change{Action: Update, Object: policy, New: policy.Spec}, "more GPUs", history.ChangeID("u1", 3)},
		"with another reason":        {Change{Action: Update, Object: saved, New: saved.Spec, Reason: "fewer"}, "fewer", history.ChangeID("u1", 3)},
		"changed without one":        {Change{Action: Update, Object: unexplained, New: saved.Spec}, "", history.ChangeID("u1", 3)},
		"deleted":                    {Change{Action: Delete, Object: saved, Old: saved.Spec}, "", history.DeletionID("u1")},
		"adopted":                    {Change{Action: Adopt, Object: unexplained, New: saved.Spec, Reason: "ours"}, "ours", history.ChangeID("u1", 3)},
		"released":                   {Change{Action: Release, Object: saved, Old: saved.Spec}, "", history.DeletionID("u1")},
		"released by the loop guard": {Change{Action: Release, Object: pod, New: "spec"}, "", ""},
		"its annotations only":       {Change{Action: Update, Object: policy}, "", ""},
		"a task":                     {Change{Action: Stop, Object: pod, New: "spec"}, "", ""},
	} {
		if got := tc.change.reason(); got != tc.reason {
			t.Errorf("%s: got the reason %q, want %q", name, got, tc.reason)
		}
		if got := idOf(tc.change, Object{Kind: "ComputeAllocation", UID: "u1"}); got != tc.wantID {
			t.Errorf("%s: got the id %q, want %q", name, got, tc.wantID)
		}
	}
}

func TestOfActivation(t *testing.T) {
	for change, want := range map[[2]v1alpha1.Activation]Action{
		{"", v1alpha1.Active}:             Update,
		{v1alpha1.Hold, v1alpha1.Hold}:    Update,
		{"", v1alpha1.Hold}:               Hold,
		{v1alpha1.Drain, v1alpha1.Hold}:   Hold,
		{v1alpha1.Active, v1alpha1.Drain}: Drain,
		{v1alpha1.Hold, v1alpha1.Active}:  Resume,
		{v1alpha1.Drain, ""}:              Resume,
	} {
		if got := OfActivation(change[0], change[1]); got != want {
			t.Errorf("%q: got %s, want %s", change, got, want)
		}
	}
}

// Each action that Activity can be filtered by has a name of its own, and is recorded
// somewhere.
func TestActionsAreRecorded(t *testing.T) {
	recorded := map[string]bool{"Hold": true, "Drain": true, "Resume": true, "Stop": true} // by OfActivation and Switching
	uses := regexp.MustCompile(`\baudit\.([A-Z]\w+)`)
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, use := range uses.FindAllSubmatch(text, -1) {
			recorded[string(use[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("audit.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []Action
	names := map[string]Action{}
	for _, constant := range regexp.MustCompile(`(?m)^\t(\w+) +Action = "(.+)"`).FindAllSubmatch(text, -1) {
		name, action := string(constant[1]), Action(constant[2])
		all = append(all, action)
		if !recorded[name] {
			t.Errorf("nothing records %s", name)
		}
		if other, exists := names[action.Past()]; exists {
			t.Errorf("%s and %s are both called %s", action, other, action.Past())
		}
		names[action.Past()] = action
	}
	if got, want := slices.Sorted(slices.Values(Actions)), slices.Sorted(slices.Values(all)); !slices.Equal(got, want) {
		t.Errorf("pages have the actions %q, want %q", got, want)
	}
}
