package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// stampFormat changes whenever the same sources must be built or rendered anew.
const stampFormat = 1

const stampPrefix = ".localcluster-built-"

// stampName names the file that says "this set of versions is built".
func stampName(goSum []byte, flags string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n", stampFormat, flags)
	for _, b := range binaries {
		fmt.Fprintf(h, "%s %s\n", b.name, b.pkg)
	}
	h.Write(goSum)
	return fmt.Sprintf("%s%x", stampPrefix, h.Sum(nil)[:8])
}

func isBuilt(stamp, bin string) bool {
	if _, err := os.Stat(stamp); err != nil {
		return false
	}
	for _, b := range binaries {
		if _, err := os.Stat(filepath.Join(bin, b.name)); err != nil {
			return false
		}
	}
	_, err := os.Stat(kueueInstall(bin))
	return err == nil
}

func removeStamps(bin string) {
	old, _ := filepath.Glob(filepath.Join(bin, stampPrefix+"*"))
	for _, f := range old {
		_ = os.Remove(f)
	}
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.(\d+)\.\S+)`)

// linkFlags writes the server's version into the binaries. Built from modules
// they would say v0.0.0, and Kueue ends when it cannot parse the server's version.
func linkFlags(goMod string) (string, error) {
	m := kubernetesVersion.FindStringSubmatch(goMod)
	if m == nil {
		return "", fmt.Errorf("go.mod requires no k8s.io/kubernetes")
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
