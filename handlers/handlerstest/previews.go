package handlerstest

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks/queries"
)

// PreviewBackend previews all changes in the same way.
type PreviewBackend struct {
	Previewed func(context.Context) (queries.Preview, error) // nil if pages preview nothing
}

func (d *PreviewBackend) Allocation(ctx context.Context, _ governance.User, _ *v1alpha1.ComputeAllocation, _ []v1alpha1.Pool) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Activation(ctx context.Context, _ governance.User, _ *v1alpha1.ComputeAllocation, _ v1alpha1.Activation) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Deletion(ctx context.Context, _ governance.User, _ string) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Policy(ctx context.Context, _ governance.User, _ *v1alpha1.ClusterPolicy) (queries.Preview, error) {
	return d.Previewed(ctx)
}

// EventsUntil reads the events of a stream until one is the last.
func EventsUntil(t *testing.T, address string, last func(html string) bool) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	html, lines := "", bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			html += data + "\n"
		} else if lines.Text() == "" && html != "" {
			if last(html) {
				return
			}
			html = ""
		}
	}
	t.Fatalf("the stream at %s ended: %s", address, response.Status)
}
