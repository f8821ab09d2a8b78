package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

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
func build(ctx context.Context, source string, other others, from downloads, bin string) error {
	bin = absolute(bin)
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil || !strings.Contains(string(mod), "module "+modulePath+"\n") {
		return fmt.Errorf("%s is not the folder of module %s; set it with --source", source, modulePath)
	}
	flags, err := linkFlags(string(mod))
	if err != nil {
		return err
	}
	sums, err := readSums(source, other.kueue, other.kubernetes)
	if err != nil {
		return err
	}
	serverFlags, allFlags := flags, flags
	if other.kubernetes != "" {
		if serverFlags, err = moduleFlags(other.kubernetes); err != nil {
			return err
		}
		allFlags += " " + serverFlags
	}
	set := buildSet{prefix: stampPrefix, tools: binaries, files: []string{kueueInstall(bin)}, sums: sums, flags: allFlags + from.mode}
	return set.build(bin, func() error {
		for _, p := range byModule(source, other, flags, serverFlags) {
			p.downloads = from
			if err := p.build(ctx, bin); err != nil {
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

// fastCompilation are flags for packages that only programs of this module have and
// whose speed matters little. Without inlining and debugging information they compile in
// little more than half of the time.
var fastCompilation = []string{
	"-gcflags", "k8s.io/kubernetes/...=-l -dwarf=false",
	"-gcflags", "sigs.k8s.io/kueue/pkg/controller/jobs/...=-l -dwarf=false",
	"-gcflags", "sigs.k8s.io/kwok/...=-l -dwarf=false",
}

// byModule divides the binaries by the module that they are built from.
func byModule(source string, other others, flags, serverFlags string) []programs {
	of := map[string]*programs{
		source:           {module: source, flags: append([]string{"-ldflags", flags}, fastCompilation...), next: "; then the console"},
		other.kueue:      {module: other.kueue, flags: []string{"-ldflags", flags}},
		other.kubernetes: {module: other.kubernetes, flags: append([]string{"-ldflags", serverFlags}, fastCompilation...)},
	}
	for _, b := range binaries {
		from := source
		switch {
		case b.name == kueueName:
			from = cmp.Or(other.kueue, source)
		case slices.Contains(kubernetesServers, b.name):
			from = cmp.Or(other.kubernetes, source)
		}
		of[from].tools = append(of[from].tools, b)
	}
	var all []programs
	for _, module := range slices.Sorted(maps.Keys(of)) {
		if len(of[module].tools) > 0 {
			all = append(all, *of[module])
		}
	}
	return all
}

// buildConsole puts the console of the module in a folder into bin.
func buildConsole(ctx context.Context, source, bin, ldflags string) error {
	p := programs{module: source, flags: []string{"-ldflags", ldflags}, tools: []tool{{consoleName, "./cmd/kuota"}}}
	return p.build(ctx, absolute(bin))
}

// buildSet is a set of binaries and files that one stamp marks as built.
type buildSet struct {
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
	if err := do(); err != nil {
		return err
	}
	if err := os.WriteFile(s.stamp(bin), nil, 0o644); err != nil {
		return fmt.Errorf("write stamp: %w", err)
	}
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

// readSums returns the checksums of the modules in these folders, of which some may
// be empty.
func readSums(modules ...string) ([]byte, error) {
	var sums []byte
	for _, module := range modules {
		if module == "" {
			continue
		}
		sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
		if err != nil {
			return nil, fmt.Errorf("read checksums: %w", err)
		}
		sums = append(sums, sum...)
	}
	return sums, nil
}

// moduleFlags returns the linkFlags of the module in a folder.
func moduleFlags(module string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read module: %w", err)
	}
	return linkFlags(string(mod))
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
