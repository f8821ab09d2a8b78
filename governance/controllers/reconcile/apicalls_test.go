package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callCounter counts the API calls of the controllers whose path or body contains
// a text, such as the name of a team.
type callCounter struct {
	mu    sync.Mutex
	text  string
	calls map[string]int // by verb and resource
}

// over returns a configuration whose clients are counted.
func (c *callCounter) over(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			c.count(r)
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start begins to count the calls that contain text.
func (c *callCounter) start(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text, c.calls = text, map[string]int{}
}

// snapshot returns the calls since start.
func (c *callCounter) snapshot() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

func (c *callCounter) count(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == "" {
		return
	}
	found := strings.Contains(r.URL.Path, c.text)
	if !found && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			content, _ := io.ReadAll(body)
			found = bytes.Contains(content, []byte(c.text))
		}
	}
	if found {
		c.calls[verbOf(r)+" "+resourceOf(r.URL.Path)]++
	}
}

func verbOf(r *http.Request) string {
	switch {
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") != string(types.MergePatchType):
		return "apply"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}

// resourceOf returns the resource and subresource of an API path, such as
// computeallocations/status.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 3 // apis, group, version
	if parts[0] == "api" {
		skip = 2
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return path
	case 3:
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

// The bounds are the calls that a new allocation needs. Each further call is a
// thousand calls when a thousand teams are created.
func TestNewAllocationAPICalls(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("calls")
	counter.start(team)
	defer counter.start("")
	create(t, c, team, v1alpha1.ComputeAllocationSpec{
		Quota:   []v1alpha1.QuotaRow{{InstanceType: "ml.g5.2xlarge", Quantities: v1alpha1.Quantities{Accelerators: new(int64(1))}}},
		Members: []v1alpha1.Member{{Kind: "User", Name: "someone"}},
	})
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var allocation v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		if meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionWithinCapacity) == nil {
			return fmt.Errorf("%s has no condition %s", team, v1alpha1.ConditionWithinCapacity)
		}
		return nil
	})
	time.Sleep(3 * time.Second) // so that calls after the allocation is ready count too

	got := counter.snapshot()
	most := map[string]int{
		"patch computeallocations":        1, // the finalizer
		"create namespaces":               1,
		"apply clusterqueues":             1,
		"apply localqueues":               1,
		"apply rolebindings":              2, // of the members and of the console
		"patch computeallocations/status": 3, // Ready with QueueActive, also before Kueue is ready, and WithinCapacity
		"create controllerrevisions":      1,
	}
	for _, call := range slices.Sorted(maps.Keys(got)) {
		t.Logf("%d %s", got[call], call)
		if got[call] > most[call] {
			t.Errorf("%d calls of %q, want at most %d", got[call], call, most[call])
		}
	}
}
