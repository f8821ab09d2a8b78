package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tool is built from a package of another module. go.mod lists it as a tool,
// which pins its version and checksum.
type tool struct{ name, pkg string }

var binaries = []tool{
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kueue", "sigs.k8s.io/kueue/cmd/kueue"},
	{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
}

const modulePath = "kuota.dev/kuota/cmd/localcluster"

// defaultSource returns the folder of this module, for a call in it or in the
// root of the repository.
func defaultSource() string {
	if _, err := os.Stat("cmd/localcluster/go.mod"); err == nil {
		return "cmd/localcluster"
	}
	return "."
}

// others are the folders of modules with other versions; empty for those of this
// module.
type others struct {
	kueue      string // with kueue-config.yaml, its configuration
	kubernetes string // only of the API server and its controllers
}

// kubernetesServers are built from the other version of Kubernetes. kubectl is not:
// tests use only what it does alike with every server.
var kubernetesServers = []string{apiServerName, controllerManagerName, schedulerName}

// build fills bin and the share folder beside it, once per set of versions.
func build(ctx context.Context, source string, other others, bin string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return fmt.Errorf("folder %s: %w", bin, err)
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil || !strings.Contains(string(mod), "module "+modulePath+"\n") {
		return fmt.Errorf("%s is not the folder of module %s; set it with --source", source, modulePath)
	}
	flags, err := linkFlags(string(mod))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return fmt.Errorf("read checksums: %w", err)
	}
	for _, module := range []string{other.kueue, other.kubernetes} {
		if module == "" {
			continue
		}
		more, err := os.ReadFile(filepath.Join(module, "go.sum"))
		if err != nil {
			return fmt.Errorf("read checksums: %w", err)
		}
		sum = append(sum, more...)
	}
	serverFlags, allFlags := flags, flags
	if other.kubernetes != "" {
		mod, err := os.ReadFile(filepath.Join(other.kubernetes, "go.mod"))
		if err != nil {
			return fmt.Errorf("read module: %w", err)
		}
		if serverFlags, err = linkFlags(string(mod)); err != nil {
			return err
		}
		allFlags += " " + serverFlags
	}
	set := buildSet{title: "all binaries", prefix: stampPrefix, tools: binaries, files: []string{kueueInstall(bin)}, sums: sum, flags: allFlags}
	return set.build(bin, func() error {
		for _, b := range binaries {
			from, flags := source, flags
			switch {
			case b.name == kueueName:
				from = cmp.Or(other.kueue, source)
			case other.kubernetes != "" && slices.Contains(kubernetesServers, b.name):
				from, flags = other.kubernetes, serverFlags
			}
			if err := buildOne(ctx, from, bin, b, "-ldflags", flags); err != nil {
				return err
			}
		}
		if err := render(ctx, source, cmp.Or(other.kueue, source), bin); err != nil {
			return err
		}
		if other.kueue == "" {
			return nil
		}
		config, err := os.ReadFile(filepath.Join(other.kueue, filepath.Base(kueueConfig(bin))))
		if err == nil {
			err = os.WriteFile(kueueConfig(bin), config, 0o644)
		}
		if err != nil {
			return fmt.Errorf("copy Kueue's configuration: %w", err)
		}
		return nil
	})
}

// buildSet is a set of binaries and files that one stamp marks as built.
type buildSet struct {
	title  string // for messages
	prefix string // of the stamp's name, which also depends on tools, sums and flags
	tools  []tool
	files  []string // which are built besides the binaries
	sums   []byte   // checksums of all modules
	flags  string
}

func (s buildSet) stamp(bin string) string {
	return filepath.Join(bin, stampName(s.prefix, s.tools, s.sums, s.flags))
}

// isBuilt reports whether the stamp and everything that it marks exist.
func (s buildSet) isBuilt(bin string) bool {
	return allExist(bin, s.tools, append(slices.Clone(s.files), s.stamp(bin))...)
}

// build calls do and writes the stamp, unless the set is built already. Only one
// process at a time builds in a folder.
func (s buildSet) build(bin string, do func() error) error {
	if s.isBuilt(bin) {
		return nil
	}
	lock, err := lockBuild(bin)
	if err != nil {
		return err
	}
	defer lock.Close()
	if s.isBuilt(bin) { // by another process meanwhile
		return nil
	}
	removeStamps(bin, s.prefix)
	begin := time.Now()
	if err := do(); err != nil {
		return err
	}
	if err := os.WriteFile(s.stamp(bin), nil, 0o644); err != nil {
		return fmt.Errorf("write stamp: %w", err)
	}
	fmt.Printf("%s built in %s (%.0f s)\n", s.title, bin, time.Since(begin).Seconds())
	return nil
}

func lockBuild(bin string) (*os.File, error) {
	path := filepath.Join(bin, ".localcluster.lock")
	lock, err := lockFile(path, false)
	if errors.Is(err, errLocked) {
		fmt.Println("waiting for another build in", bin)
		return lockFile(path, true)
	}
	return lock, err
}

// buildOne builds a binary beside its target and renames it, so that a running
// process keeps the old one.
func buildOne(ctx context.Context, source, bin string, p tool, flags ...string) error {
	fmt.Printf("building %s …", p.name)
	begin := time.Now()
	fresh := filepath.Join(bin, ".new-"+p.name)
	args := slices.Concat([]string{"build", "-mod=readonly", "-buildvcs=false", "-o", fresh}, flags, []string{p.pkg})
	if _, err := goTool(ctx, source, args...); err != nil {
		fmt.Println()
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := os.Rename(fresh, filepath.Join(bin, p.name)); err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	fmt.Printf(" %.0f s\n", time.Since(begin).Seconds())
	return nil
}

// goTool runs the go command in a module. A workspace above it, which could
// change versions, is ignored.
func goTool(ctx context.Context, source string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(exit.Stderr, tailLines))
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// stampFormat changes whenever the same sources have to be built or rendered
// again.
const stampFormat = 1

const stampPrefix = ".localcluster-built-"

// stampName returns the name of the file that marks a set of versions as built.
func stampName(prefix string, tools []tool, goSum []byte, flags string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n", stampFormat, flags)
	for _, p := range tools {
		fmt.Fprintf(h, "%s %s\n", p.name, p.pkg)
	}
	h.Write(goSum)
	return fmt.Sprintf("%s%x", prefix, h.Sum(nil)[:8])
}

// allExist reports whether the files and the binaries of the tools exist.
func allExist(bin string, tools []tool, files ...string) bool {
	for _, p := range tools {
		files = append(files, filepath.Join(bin, p.name))
	}
	return !slices.ContainsFunc(files, func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

func removeStamps(bin, prefix string) {
	old, _ := filepath.Glob(filepath.Join(bin, prefix+"*"))
	for _, f := range old {
		_ = os.Remove(f)
	}
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.(\d+)\.\S+)`)

// linkFlags returns flags that set the server's version in the binaries. Those
// built from modules would report v0.0.0, and Kueue exits when it cannot parse
// the server's version.
func linkFlags(goMod string) (string, error) {
	m := kubernetesVersion.FindStringSubmatch(goMod)
	if m == nil {
		return "", errors.New("go.mod does not require k8s.io/kubernetes")
	}
	const base, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
	return strings.Join([]string{
		"-s -w",
		"-X " + base + ".gitVersion=" + m[1],
		"-X " + base + ".gitMajor=1",
		"-X " + base + ".gitMinor=" + m[2],
		"-X " + client + ".gitVersion=" + m[1],
	}, " "), nil
}
