package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeFiles writes files into a folder, which it creates.
func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// greeter is a module with one program, which imports and embeds.
func greeter(t *testing.T, greeting string) programs {
	t.Helper()
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{
		"go.mod":               "module example.com/greeter\n\ngo 1.26.0\n",
		"go.sum":               "",
		"cmd/greet/main.go":    "package main\n\nimport \"example.com/greeter/words\"\n\nfunc main() { println(words.Greeting) }\n",
		"words/words.go":       "package words\n\nimport _ \"embed\"\n\n//go:embed greeting.txt\nvar Greeting string\n",
		"words/greeting.txt":   greeting,
		"unrelated/package.go": "package unrelated // " + folder + "\n",
	})
	return programs{module: folder, tools: []tool{{"greet", "./cmd/greet"}}}
}

func TestSecondCheckoutTakesProgramsFromTheStore(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOCACHE", goCache(t))
	bin := filepath.Join(t.TempDir(), "bin")
	if err := greeter(t, "hello").build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "greet")); err != nil {
		t.Fatal(err)
	}
	other := greeter(t, "hello")
	found, err := fromStore(t, other)
	if err != nil || !found {
		t.Errorf("another checkout with the same sources: found %t, error %v", found, err)
	}
	for name, change := range map[string]func(programs) programs{
		"an embedded file": func(programs) programs { return greeter(t, "good morning") },
		"flags":            func(p programs) programs { p.flags = []string{"-ldflags", "-s"}; return p },
		"a source": func(p programs) programs {
			writeFiles(t, p.module, map[string]string{"words/more.go": "package words\n"})
			return p
		},
		"go.sum": func(p programs) programs {
			writeFiles(t, p.module, map[string]string{"go.sum": "example.com/a v1.0.0/go.mod h1:x\n"})
			return p
		},
	} {
		if found, err := fromStore(t, change(greeter(t, "hello"))); err != nil || found {
			t.Errorf("after a change of %s: found %t, error %v; want another program", name, found, err)
		}
	}
}

// goCache returns Go's build cache, which otherwise is in the user's cache folder.
func goCache(t *testing.T) string {
	t.Helper()
	cache, err := goTool(t.Context(), ".", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func fromStore(t *testing.T, p programs) (bool, error) {
	t.Helper()
	key, err := p.key(t.Context(), p.tools[0])
	if err != nil {
		return false, err
	}
	s, err := openStore()
	if err != nil {
		return false, err
	}
	return s.get(key, filepath.Join(t.TempDir(), "program"))
}

func TestFailedBuildNamesThePrograms(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOCACHE", goCache(t))
	p := greeter(t, "hello")
	writeFiles(t, p.module, map[string]string{"words/words.go": "package words\n"})
	bin := t.TempDir()
	err := p.build(t.Context(), bin)
	if err == nil || !strings.Contains(err.Error(), "build greet") || !strings.Contains(err.Error(), "words.Greeting") {
		t.Errorf("got error %v, want one with the program and the compiler's message", err)
	}
	if left, _ := os.ReadDir(bin); len(left) > 0 {
		t.Errorf("the failed build left %v", left)
	}
}

func TestStoreIsPrivateAndPruned(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s, err := openStore()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store has mode %v, error %v; want 0700", info.Mode(), err)
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"used", "unused"} {
		if err := s.put(key, program); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-storeAge - time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, key), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.get("used", filepath.Join(t.TempDir(), "program")); !found || err != nil {
		t.Fatalf("found %t, error %v", found, err)
	}
	if err := s.prune(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "used" {
		t.Errorf("after pruning: %v, error %v; want the program that was used", entries, err)
	}
}

func TestExecutable(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubectl": "kubectl",
		"go.etcd.io/etcd/server/v3":     "server",
		"./cmd/kuota":                   "kuota",
		"github.com/kubeflow/training-operator/cmd/training-operator.v1": "training-operator.v1",
	} {
		if got := executable(pkg); got != want {
			t.Errorf("%s: got %q, want %q", pkg, got, want)
		}
	}
}
