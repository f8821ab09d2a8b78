package handlerstest

import (
	"context"
	"io"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// LogsBackend has the log of each container in memory.
type LogsBackend struct {
	PodList  []*index.Pod
	PodsErr  error
	Denied   bool
	Query    logs.Query // of the last call
	Lines    logs.Update
	ReadErr  error
	Updates  []logs.Update // that Follow sends
	Content  string        // of the whole log
	OpenErr  error
	Released chan struct{} // closed when Follow has ended; nil for nobody waits
}

// May implements tasks.Logs.
func (d *LogsBackend) May(context.Context, governance.User, string) (bool, error) {
	return !d.Denied, nil
}

// Pods implements tasks.Logs.
func (d *LogsBackend) Pods(context.Context, governance.User, tasks.Address) ([]*index.Pod, error) {
	return d.PodList, d.PodsErr
}

// Read implements tasks.Logs.
func (d *LogsBackend) Read(_ context.Context, _ governance.User, q logs.Query) (logs.Update, error) {
	d.Query = q
	return d.Lines, d.ReadErr
}

// Follow implements tasks.Logs.
func (d *LogsBackend) Follow(ctx context.Context, _ governance.User, _ logs.Query, send func(logs.Update) error) error {
	if d.Released != nil {
		defer close(d.Released)
	}
	for _, u := range d.Updates {
		if err := send(u); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// Open implements tasks.Logs.
func (d *LogsBackend) Open(_ context.Context, _ governance.User, q logs.Query) (io.ReadCloser, error) {
	d.Query = q
	return io.NopCloser(strings.NewReader(d.Content)), d.OpenErr
}
