package image_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// container is a running container of the image.
type container struct {
	command *exec.Cmd
	output  bytes.Buffer
	exited  chan struct{}
	err     error // valid once exited is closed
}

// start runs the image's binary in a container by runc: as the image's user,
// without capabilities, on a read-only root file system with nothing writable but
// volume, at /volume. It shares the network of this machine.
func start(t *testing.T, root, volume string, args ...string) *container {
	t.Helper()
	bundle := t.TempDir()
	run(t, "runc", "spec", "--bundle", bundle)
	path := filepath.Join(bundle, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(b, &spec); err != nil {
		t.Fatal(err)
	}
	process := spec["process"].(map[string]any)
	process["terminal"], process["user"], process["args"] = false, map[string]any{"uid": user, "gid": user}, append([]string{"/kuota"}, args...)
	process["capabilities"], process["rlimits"] = map[string]any{}, nil
	delete(spec, "hostname") // belongs to a namespace that it does not get
	spec["root"] = map[string]any{"path": root, "readonly": true}
	spec["mounts"] = []any{
		map[string]any{"destination": "/proc", "type": "proc", "source": "proc"},
		map[string]any{"destination": "/volume", "type": "bind", "source": volume, "options": []string{"bind", "rw"}},
	}
	linux := spec["linux"].(map[string]any)
	linux["namespaces"] = []any{map[string]any{"type": "mount"}, map[string]any{"type": "pid"}}
	if b, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := clustertest.Name("kuota-image")
	c := &container{command: exec.Command("runc", "run", "--bundle", bundle, name), exited: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = &c.output, &c.output
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.command.Wait()
		close(c.exited)
	}()
	t.Cleanup(func() {
		_ = exec.Command("runc", "delete", "--force", name).Run()
		<-c.exited
	})
	return c
}

// wait waits until the container has ended and returns its output.
func (c *container) wait(t *testing.T) string {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(time.Minute):
		t.Fatal("the container does not end")
	}
	if c.err != nil {
		t.Fatalf("the container failed: %v\n%s", c.err, c.output.String())
	}
	return c.output.String()
}

// answers returns a check that succeeds when the address answers 200.
func (c *container) answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-c.exited:
			return fmt.Errorf("the container ended: %v\n%s", c.err, c.output.String())
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
