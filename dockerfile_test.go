package kuota_test

import (
	"encoding/json"
	"go/version"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dockerfile returns the words of each instruction of the Dockerfile.
func dockerfile(t *testing.T) (instructions [][]string) {
	t.Helper()
	b, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", " ")) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			instructions = append(instructions, words)
		}
	}
	return instructions
}

// TestDockerfileCopiesEveryPackage checks that the build stage has the source of
// every package in the binary, and that .dockerignore excludes none of it.
func TestDockerfileCopiesEveryPackage(t *testing.T) {
	var copied []string
	for _, words := range dockerfile(t) {
		if words[0] == "COPY" && !strings.HasPrefix(words[1], "--from") {
			copied = append(copied, words[1:len(words)-1]...)
		}
	}
	b, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Fields(string(b))
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/kuota").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	own := 0
	for path := range strings.FieldsSeq(string(out)) {
		folder, ok := strings.CutPrefix(path, module)
		if !ok {
			continue
		}
		own++
		if !slices.ContainsFunc(copied, func(c string) bool { return within(folder, c) }) {
			t.Errorf("no COPY for %s: add its top-level folder to the Dockerfile", folder)
		}
		if slices.ContainsFunc(ignored, func(i string) bool { return within(folder, i) }) {
			t.Errorf(".dockerignore excludes %s, which is in the binary", folder)
		}
	}
	if own < 10 {
		t.Errorf("cmd/kuota imports only %d packages of this module", own)
	}
	for _, c := range copied {
		if _, err := os.Stat(c); err != nil {
			t.Errorf("COPY %s: %v", c, err)
		}
	}
}

// TestDockerfilePinsItsBase checks that the build stage names one version of Go
// that can build go.mod, and that the image adds nothing to the files it copies.
func TestDockerfilePinsItsBase(t *testing.T) {
	var bases []string
	for _, words := range dockerfile(t) {
		if words[0] == "FROM" {
			bases = append(bases, strings.Join(words[1:], " "))
		}
	}
	want := regexp.MustCompile(`^--platform=\$BUILDPLATFORM golang:(\d+\.\d+\.\d+)-bookworm(@sha256:[0-9a-f]{64})? AS build$`)
	if len(bases) != 2 || bases[1] != "scratch" || !want.MatchString(bases[0]) {
		t.Fatalf("the stages are %q, want %s and scratch", bases, want)
	}
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var mod struct{ Go string }
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if base := want.FindStringSubmatch(bases[0])[1]; version.Compare("go"+base, "go"+mod.Go) < 0 {
		t.Errorf("the Dockerfile builds with Go %s, and go.mod needs %s", base, mod.Go)
	}
}
