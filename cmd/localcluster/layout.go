package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// markerName is the file that marks a folder as created by localcluster, which
// may therefore delete its contents.
const markerName = ".made-by-localcluster"

// ownLog is the name of the log of a supervisor in the background.
const ownLog = "localcluster"

// layout has the path of every file of an instance.
type layout struct{ dir string }

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

func (l layout) kubeconfig() string          { return l.path("kubeconfig") }
func (l layout) pki(name string) string      { return l.path("pki", name) }
func (l layout) data(name string) string     { return l.path("data", name) }
func (l layout) signin(name string) string   { return l.path("signin", name) }
func (l layout) log(component string) string { return l.path("logs", component+".log") }
func (l layout) run(name string) string      { return l.path("run", name) }
func (l layout) auditPolicy() string         { return l.run("audit-policy.yaml") }
func (l layout) lock() string                { return l.run("lock") }
func (l layout) ready() string               { return l.path("ready") }
func (l layout) url() string                 { return l.path("url") }

// componentConfig returns the path of a client's kubeconfig.
func (l layout) componentConfig(name string) string {
	if name == adminName {
		return l.kubeconfig()
	}
	return l.path("kubeconfigs", name)
}

func (l layout) remove(names ...string) {
	for _, n := range names {
		_ = os.RemoveAll(l.path(n))
	}
}

// The names in an instance's folder that each start creates again. Of the folders
// in kept, one file survives: the lock, which this process has and whose deletion
// would let a second instance start, and the log that a detached supervisor
// already writes to.
var (
	folders = []string{"kubeconfigs", "data", "pki", "signin"}
	files   = []string{"ready", "url", "kubeconfig"}
	kept    = map[string]string{"run": "lock", "logs": ownLog + ".log"}
)

// checkOwned returns an error if the folder has contents under one of these
// names and is not marked, since reset would delete them.
func (l layout) checkOwned() error {
	if _, err := os.Stat(l.path(markerName)); err == nil {
		return nil
	}
	for _, name := range slices.Concat(folders, files, []string{"run", "logs"}) {
		path := l.path(name)
		entries, err := os.ReadDir(path)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == kept[name] })
		if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
			continue
		}
		return fmt.Errorf("%s exists and was not created by localcluster, which would delete it; choose another --dir or move it away", path)
	}
	return nil
}

// reset deletes what an earlier run left, and creates the folders.
func (l layout) reset() error {
	l.remove(slices.Concat(folders, files)...)
	for name, survivor := range kept {
		entries, _ := os.ReadDir(l.path(name))
		for _, e := range entries {
			if e.Name() != survivor {
				l.remove(filepath.Join(name, e.Name()))
			}
		}
	}
	for _, name := range folders {
		if err := os.MkdirAll(l.path(name), 0o700); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	if err := os.MkdirAll(l.path("logs"), 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if err := os.WriteFile(l.path(markerName), nil, 0o644); err != nil {
		return fmt.Errorf("mark folder: %w", err)
	}
	return nil
}
