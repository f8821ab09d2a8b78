package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	kueueModule = "sigs.k8s.io/kueue"
	kwokModule  = "sigs.k8s.io/kwok"
)

// stageFiles are KWOK's stages of the life of nodes and pods. The chaos stage
// acts only on pods with its label.
var stageFiles = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/general/pod-create.yaml",
	"pod/general/pod-init-container-running.yaml",
	"pod/general/pod-init-container-completed.yaml",
	"pod/general/pod-ready.yaml",
	"pod/general/pod-complete.yaml",
	"pod/general/pod-delete.yaml",
	"pod/chaos/pod-container-running-failed.yaml",
}

func share(bin string) string        { return filepath.Join(filepath.Dir(bin), "share") }
func kueueInstall(bin string) string { return filepath.Join(share(bin), "kueue.yaml") }
func kueueVersion(bin string) string { return filepath.Join(share(bin), "kueue.version") }

// kueueConfig is the file with the configuration of another version of Kueue.
// Without the file, Kueue starts with kueueDefaults.
func kueueConfig(bin string) string { return filepath.Join(share(bin), "kueue-config.yaml") }

func kwokStages(bin string) string { return filepath.Join(share(bin), "kwok") }

// render writes the manifests and stages of the modules, which a start needs
// besides binaries. kueue is the folder of the module that requires Kueue.
func render(ctx context.Context, source, kueue, bin string) error {
	fmt.Println("rendering manifests …")
	if err := os.MkdirAll(kwokStages(bin), 0o755); err != nil {
		return fmt.Errorf("share folder: %w", err)
	}
	dir, version, err := moduleFolder(ctx, kueue, kueueModule)
	if err != nil {
		return err
	}
	out, err := kustomize(ctx, bin, filepath.Join(dir, "config", "default"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(kueueVersion(bin), []byte(version+"\n"), 0o644); err != nil {
		return fmt.Errorf("write Kueue's version: %w", err)
	}
	if dir, _, err = moduleFolder(ctx, source, kwokModule); err != nil {
		return err
	}
	for _, f := range stageFiles {
		if err := renderStage(filepath.Join(dir, "kustomize", "stage", f), filepath.Join(kwokStages(bin), filepath.Base(f))); err != nil {
			return err
		}
	}
	// Last: preflight takes this file as the sign of a complete build.
	if err := os.WriteFile(kueueInstall(bin), out, 0o644); err != nil {
		return fmt.Errorf("write Kueue's install: %w", err)
	}
	return nil
}

// kustomize renders the kustomization of a folder.
func kustomize(ctx context.Context, bin, dir string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "kustomize", dir).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("render %s: %w\n%s", dir, err, lastLines(exit.Stderr, tailLines))
	}
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", dir, err)
	}
	return out, nil
}

func moduleFolder(ctx context.Context, source, module string) (dir, version string, err error) {
	out, err := goTool(ctx, source, "list", "-mod=readonly", "-m", "-f", "{{.Dir}} {{.Version}}", module)
	if err != nil {
		return "", "", fmt.Errorf("find module %s: %w", module, err)
	}
	dir, version, _ = strings.Cut(out, " ")
	return dir, version, nil
}

func renderStage(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	var stage map[string]any
	if err := yaml.Unmarshal(b, &stage); err != nil {
		return fmt.Errorf("stage %s: %w", from, err)
	}
	setDelays(stage)
	if b, err = yaml.Marshal(stage); err != nil {
		return fmt.Errorf("stage %s: %w", from, err)
	}
	return os.WriteFile(to, b, 0o644)
}

// setDelays changes KWOK's default delays. Its jitter is an upper bound and
// overrides a longer delay: with the shipped default of 5 s, a pod annotated to
// run for ten minutes would end after 5 s. Tests would wait for pods that take
// up to 10 s to start.
func setDelays(stage map[string]any) {
	meta, _ := stage["metadata"].(map[string]any)
	spec, _ := stage["spec"].(map[string]any)
	delay, _ := spec["delay"].(map[string]any)
	if meta == nil || delay == nil {
		return
	}
	switch meta["name"] {
	case "pod-create", "pod-ready", "pod-init-container-running", "pod-init-container-completed":
		delay["durationMilliseconds"] = 100
		delete(delay, "jitterDurationMilliseconds")
	case "pod-complete":
		delay["durationMilliseconds"] = 60_000
		delete(delay, "jitterDurationMilliseconds")
	case "pod-delete":
		delay["durationMilliseconds"] = 100
	}
}
