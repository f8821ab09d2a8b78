package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// markerName is the file that shows that a folder was made by localcluster,
// and may therefore be deleted by it.
const markerName = ".made-by-localcluster"

// ownLog is the log of a supervisor in the background.
const ownLog = "localcluster"

// layout names every path of one instance.
type layout struct{ dir string }

func newLayout(dir string) (layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("folder %s: %w", dir, err)
	}
	return layout{dir: abs}, nil
}

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

func (l layout) kubeconfig() string              { return l.path("kubeconfig") }
func (l layout) componentConfig(n string) string { return l.path("kubeconfigs", n) }
func (l layout) pki(name string) string          { return l.path("pki", name) }
func (l layout) data(name string) string         { return l.path("data", name) }
func (l layout) log(component string) string     { return l.path("logs", component+".log") }
func (l layout) run(name string) string          { return l.path("run", name) }
func (l layout) lock() string                    { return l.run("lock") }
func (l layout) ready() string                   { return l.path("ready") }
func (l layout) url() string                     { return l.path("url") }
func (l layout) remove(names ...string) {
	for _, n := range names {
		_ = os.RemoveAll(l.path(n))
	}
}

// ours are the names in a folder that each start makes anew.
var ours = []string{"data", "pki", "kubeconfigs", "kubeconfig", "signin", "run", "logs", "ready", "url"}

// checkOwned refuses a folder that holds something under one of these names
// and was not marked by us, since the next step deletes it.
func (l layout) checkOwned() error {
	if _, err := os.Stat(l.path(markerName)); err == nil {
		return nil
	}
	for _, name := range ours {
		path := l.path(name)
		entries, err := os.ReadDir(path)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { // made by this very start
			return e.Name() == "lock" || e.Name() == ownLog+".log"
		})
		if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
			continue
		}
		return fmt.Errorf("%s exists and was not made by localcluster; "+
			"it would be deleted, so choose another --dir or move it away", path)
	}
	return nil
}

// empty deletes what a folder holds, except for one file.
func (l layout) empty(name, except string) {
	entries, _ := os.ReadDir(l.path(name))
	for _, e := range entries {
		if e.Name() != except {
			_ = os.RemoveAll(l.path(name, e.Name()))
		}
	}
}

// makeFresh empties what belongs to one run. The lock file stays: we hold it,
// and deleting it would let a second instance in. Our own log stays, since a
// detached supervisor already writes to it.
func (l layout) makeFresh() error {
	l.remove("ready", "url", "kubeconfig", "kubeconfigs", "data", "pki", "signin")
	l.empty("run", "lock")
	l.empty("logs", ownLog+".log")
	for _, name := range []string{"kubeconfigs", "data", "pki", "signin", "logs"} {
		mode := os.FileMode(0o700)
		if name == "logs" {
			mode = 0o755
		}
		if err := os.MkdirAll(l.path(name), mode); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	if err := os.WriteFile(l.path(markerName), nil, 0o644); err != nil {
		return fmt.Errorf("mark folder: %w", err)
	}
	return nil
}
