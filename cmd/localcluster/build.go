package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// binaries are built from packages of other modules; go.mod lists them as tools
// so that their versions and checksums are pinned there.
var binaries = []struct{ name, pkg string }{
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kueue", "sigs.k8s.io/kueue/cmd/kueue"},
	{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
}

const modulePath = "kuota.dev/kuota/cmd/localcluster"

// defaultSource finds the module from the repository's root or from within it.
func defaultSource() string {
	if _, err := os.Stat("cmd/localcluster/go.mod"); err == nil {
		return "cmd/localcluster"
	}
	return "."
}

// build fills bin and the share folder beside it, once per set of versions.
// older is the folder of a module with another version of Kueue, and how that is
// configured; empty takes the one of this module.
func build(ctx context.Context, source, older, bin string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return fmt.Errorf("folder %s: %w", bin, err)
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil || !strings.Contains(string(mod), "module "+modulePath+"\n") {
		return fmt.Errorf("%s is not the folder of module %s; say where it is with --source", source, modulePath)
	}
	flags, err := linkFlags(string(mod))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return fmt.Errorf("read checksums: %w", err)
	}
	kueue := source
	if older != "" {
		kueue = older
		theirs, err := os.ReadFile(filepath.Join(older, "go.sum"))
		if err != nil {
			return fmt.Errorf("read checksums: %w", err)
		}
		sum = append(sum, theirs...)
	}
	stamp := filepath.Join(bin, stampName(sum, flags))
	if isBuilt(stamp, bin) {
		return nil
	}

	lock, err := lockBuild(bin)
	if err != nil {
		return err
	}
	defer lock.Close()
	if isBuilt(stamp, bin) { // somebody else did it while we waited
		return nil
	}
	removeStamps(bin)
	begin := time.Now()
	for _, b := range binaries {
		from := source
		if b.name == kueueName {
			from = kueue
		}
		if err := buildOne(ctx, from, bin, b.name, b.pkg, flags); err != nil {
			return err
		}
	}
	if err := render(ctx, source, kueue, bin); err != nil {
		return err
	}
	if older != "" {
		config, err := os.ReadFile(filepath.Join(older, filepath.Base(kueueConfig(bin))))
		if err == nil {
			err = os.WriteFile(kueueConfig(bin), config, 0o644)
		}
		if err != nil {
			return fmt.Errorf("configuration of that Kueue: %w", err)
		}
	}
	if err := os.WriteFile(stamp, nil, 0o644); err != nil {
		return fmt.Errorf("write stamp: %w", err)
	}
	fmt.Printf("all binaries built in %s (%.0f s)\n", bin, time.Since(begin).Seconds())
	return nil
}

func lockBuild(bin string) (*os.File, error) {
	path := filepath.Join(bin, ".localcluster.lock")
	lock, err := lockFile(path, false)
	if errors.Is(err, errHeld) {
		fmt.Println("waiting for another build in", bin)
		return lockFile(path, true)
	}
	return lock, err
}

// buildOne writes beside the target and renames, so that a cluster which runs
// from the old binary is not disturbed.
func buildOne(ctx context.Context, source, bin, name, pkg, flags string) error {
	fmt.Printf("building %s …", name)
	begin := time.Now()
	fresh := filepath.Join(bin, ".new-"+name)
	if _, err := goTool(ctx, source, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o", fresh, pkg); err != nil {
		fmt.Println()
		return fmt.Errorf("build %s: %w", name, err)
	}
	if err := os.Rename(fresh, filepath.Join(bin, name)); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	fmt.Printf(" %.0f s\n", time.Since(begin).Seconds())
	return nil
}

// goTool runs the go command in the module, not in a workspace that happens to
// lie above it, so that the versions are those of our go.mod.
func goTool(ctx context.Context, source string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(exit.Stderr, tailLines))
	}
	return "", fmt.Errorf("go %s: %w", args[0], err)
}
