package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// cgroup returns the name of the cgroup of all pods on the real node.
func (l layout) cgroup() string {
	return fmt.Sprintf("localcluster-%x", sha256.Sum256([]byte(l.dir)))[:len("localcluster-")+8]
}

// cgroups returns the folder of that cgroup in each hierarchy of this machine:
// one in version 2, one per controller in version 1.
func (l layout) cgroups() (folders []string) {
	const root = "/sys/fs/cgroup"
	hierarchies := []string{root}
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
		files, _ := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
		hierarchies = hierarchies[:0]
		for _, f := range files {
			hierarchies = append(hierarchies, filepath.Dir(f))
		}
	}
	for _, h := range hierarchies {
		folders = append(folders, filepath.Join(h, l.cgroup()))
	}
	return folders
}

// makeCgroups creates the cgroup, which the kubelet expects to exist.
func makeCgroups(l layout) error {
	for _, folder := range l.cgroups() {
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("create cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroups removes the cgroup with all below it, once its processes have
// ended. Without a real node there is none.
func removeCgroups(l layout) {
	_ = waitFor(context.Background(), 5*time.Second, func(context.Context) error {
		var errs []error
		for _, root := range l.cgroups() {
			var below []string
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					below = append(below, path)
				}
				return nil
			})
			for _, folder := range slices.Backward(below) {
				if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
		return errors.Join(errs...)
	})
}
