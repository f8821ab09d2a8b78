package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestReviews measures how many access reviews the console requests from the API server
// with 1,000 teams and 50 members of five teams each, who keep pages open under constant
// change and load pages. make bench runs it.
func TestReviews(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("run by make bench")
	}
	const teams, members, each, window = 1000, 50, 5, 60 * time.Second
	c := clustertest.Get(t)
	console(t)
	start := c.ReadyTeams(t, teams)
	var bindings, users strings.Builder
	for i := range teams {
		fmt.Fprintln(&bindings, "---"+memberBinding(fmt.Sprintf("%s-%d", start, i), fmt.Sprintf("%s-group-%d", start, i)))
	}
	c.Kubectl(t, bindings.String(), "create", "-f", "-")
	file := filepath.Join(c.Dir, "signin", "users.yaml")
	original, err := os.ReadFile(file)
	must(t, err)
	for i := range members {
		fmt.Fprintf(&users, "- {name: member-%d, password: kuota-member-%d, fullName: Member, email: member-%d@example.com, about: a test, groups: [", i, i, i)
		for j := range each {
			fmt.Fprintf(&users, "%s-group-%d, ", start, i*each+j)
		}
		users.WriteString("]}\n")
	}
	must(t, os.WriteFile(file, append(original, users.String()...), 0o600))
	t.Cleanup(func() { _ = os.WriteFile(file, original, 0o600) })

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	for i := range members {
		member := newUser(t, console(t), fmt.Sprintf("member-%d", i))
		if _, body := fetch(t, member, console(t)+"/policies"); strings.Count(body, `id="allocation-`+start) != each {
			t.Fatalf("member %d: got %d teams, want %d", i, strings.Count(body, `id="allocation-`+start), each)
		}
		for _, path := range []string{"/tasks/events", "/policies/events"} {
			work.Go(func() {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, console(t)+path, nil)
				must(t, err)
				response, err := member.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				for lines := bufio.NewReader(response.Body); ; {
					if _, err := lines.ReadString('\n'); err != nil {
						break
					}
				}
				if ctx.Err() == nil {
					t.Errorf("the stream of member %d ended", i)
				}
			})
		}
		work.Go(func() { // loads a page every few seconds
			for n := 0; ctx.Err() == nil; n++ {
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, console(t)+[]string{"/tasks", "/policies"}[n%2], nil)
				if response, err := member.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
			}
		})
	}
	work.Go(func() { // changes an allocation ten times a second
		for n := 0; ctx.Err() == nil; n++ {
			var changed v1alpha1.ComputeAllocation
			if c.Client.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("%s-%d", start, n%teams)}, &changed) == nil {
				changed.Spec.Description = fmt.Sprint(n)
				_ = c.Client.Update(ctx, &changed)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	before, began := reviews(t, c), time.Now()
	time.Sleep(window) // the measured window
	perSecond := float64(reviews(t, c)-before) / time.Since(began).Seconds()
	stop()
	work.Wait()
	fmt.Printf("figure reviews_of_50_members %.1f /s\n", perSecond)
	if perSecond > 30 || perSecond < 1 {
		t.Errorf("got %.1f reviews a second, want 1 to 30", perSecond)
	}
}

// reviews returns the number of access reviews that the API server has answered.
func reviews(t *testing.T, c *clustertest.Cluster) (total int) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config)
	must(t, err)
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="subjectaccessreviews"`) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err != nil {
				t.Fatal(err)
			}
			total += int(n)
		}
	}
	return total
}
