// Package python_test runs the tests of the Python module.
package python_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPython compiles the module and its examples, and runs its tests.
func TestPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	files := []string{"test_kuota.py", "test_elastic.py", "examples/batch.py", "../docs/examples/elastic/train.py"}
	for _, pattern := range []string{"kuota/*.py", "kuota/elastic/*.py"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files { // so that go test runs again after a change, and does not print what it cached
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, arguments := range map[string][]string{
		"compile": append([]string{"-W", "error", "-m", "py_compile"}, files...),
		"test":    {"-W", "error", "-m", "unittest"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "python3", arguments...)
			command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPYCACHEPREFIX="+t.TempDir()) // py_compile writes in any case
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("python3 %s: %v\n%s", strings.Join(arguments, " "), err, out)
			}
		})
	}
}

// TestExample checks that docs/python.md shows the example that e2e runs.
func TestExample(t *testing.T) {
	example, err := os.ReadFile("examples/batch.py")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/python.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(example)+"```\n") {
		t.Error("docs/python.md does not show examples/batch.py as it is")
	}
}
