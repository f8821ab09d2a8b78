package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The programs of a real node. Those of Kubernetes are tools of this module, those
// of containerd and CoreDNS of modules of their own, so that a change of them builds no
// other binary again.
var (
	kubernetesNode = []tool{
		{"kubelet", "k8s.io/kubernetes/cmd/kubelet"},
		{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"},
		{"pause", modulePath + "/pause"},
	}
	containerdNode = []tool{
		{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
		{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
		{"ctr", "github.com/containerd/containerd/v2/cmd/ctr"},
	}
	dnsNode = []tool{{"coredns", modulePath + "/dns"}}
)

const nodeStampPrefix = ".localcluster-node-built-"

// pauseImage is the image of the container that has the namespaces of a pod.
const pauseImage = "localhost/localcluster-pause:1"

func pauseArchive(bin string) string { return filepath.Join(share(bin), "pause.tar") }

// buildNode fills bin with the programs of a real node, once per set of versions.
func buildNode(ctx context.Context, source, bin string) error {
	bin = absolute(bin)
	flags, err := moduleFlags(source)
	if err != nil {
		return err
	}
	containerd, dns := filepath.Join(source, "containerd"), filepath.Join(source, "dns")
	sums, err := readSums(source, containerd, dns)
	if err != nil {
		return err
	}
	set := buildSet{
		prefix: nodeStampPrefix,
		tools:  slices.Concat(kubernetesNode, containerdNode, dnsNode), files: []string{pauseArchive(bin)}, sums: sums, flags: flags,
	}
	return set.build(bin, func() error {
		for _, p := range []programs{
			{module: source, tools: kubernetesNode, flags: []string{"-ldflags", flags}},
			{module: containerd, tools: containerdNode, flags: []string{"-ldflags", "-s -w", "-tags", "no_btrfs,no_devmapper,no_zfs"}},
			{module: dns, tools: dnsNode, flags: []string{"-ldflags", "-s -w"}},
		} {
			if err := p.build(ctx, bin); err != nil {
				return err
			}
		}
		return writeImage(pauseArchive(bin), pauseImage, filepath.Join(bin, "pause"))
	})
}

// checkNode returns an error that names what is missing for a real node.
func checkNode(bin string) error {
	if os.Getuid() != 0 {
		return errors.New("a node that runs containers needs root; without --real-node no root is needed")
	}
	stamps, _ := filepath.Glob(filepath.Join(bin, nodeStampPrefix+"*"))
	if len(stamps) == 0 || !allExist(bin, slices.Concat(kubernetesNode, containerdNode, dnsNode), pauseArchive(bin)) {
		return fmt.Errorf("%s has no kubelet, containerd and CoreDNS; run: localcluster build --real-node --bin %s", bin, bin)
	}
	var missing []string
	for _, name := range []string{"runc", "ip", "iptables"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if _, err := os.Stat(filepath.Join(cniPlugins, "bridge")); err != nil {
		missing = append(missing, "CNI plugins in "+cniPlugins)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s missing; on Debian run: apt-get install runc containernetworking-plugins iptables iproute2", strings.Join(missing, ", "))
	}
	return nil
}

// writeImage writes a Docker archive with an image that has one file: a static
// binary, which is its entry point.
func writeImage(archive, name, binary string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	path := filepath.Base(binary)
	layer, err := tarball(map[string][]byte{path: content})
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/" + path}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	image, err := tarball(map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest})
	if err == nil {
		err = os.WriteFile(archive, image, 0o644)
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	return nil
}

// tarball returns an archive of executable files.
func tarball(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
