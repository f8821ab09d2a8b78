package main

import (
	"context"
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

// stageFiles are KWOK's descriptions of how nodes and pods live. The chaos
// stage acts only on pods that carry its label.
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

// kueueConfig is how a Kueue of another version starts; without it, as
// kueueDefaults says.
func kueueConfig(bin string) string { return filepath.Join(share(bin), "kueue-config.yaml") }

func kwokStages(bin string) string { return filepath.Join(share(bin), "kwok") }

// render takes from the modules what a start needs besides binaries; kueue is
// the folder of the one that names Kueue.
func render(ctx context.Context, source, kueue, bin string) error {
	fmt.Println("rendering manifests …")
	if err := os.MkdirAll(kwokStages(bin), 0o755); err != nil {
		return fmt.Errorf("share folder: %w", err)
	}
	dir, version, err := moduleFolder(ctx, kueue, kueueModule)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "kustomize", filepath.Join(dir, "config", "default")).Output()
	if err != nil {
		return fmt.Errorf("render Kueue's install: %w", err)
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
	// Last, because isBuilt takes this file as the sign that all is there.
	if err := os.WriteFile(kueueInstall(bin), out, 0o644); err != nil {
		return fmt.Errorf("write Kueue's install: %w", err)
	}
	return nil
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

// setDelays changes how long KWOK waits by default. Its jitter is an upper
// bound and wins over a longer delay, so that with the shipped default of 5 s a
// pod annotated to run for ten minutes would end after 5 s. And a pod that
// takes up to 10 s to start makes every test slow.
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
