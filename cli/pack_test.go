package cli

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func noQuestion(question string) error { return errors.New("asked: " + question) }

// TestPack runs the script of a packed folder with sh: it has the same files, byte for byte, and the
// command runs in them and reads its standard input.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	binary := make([]byte, 3000)
	if _, err := rand.Read(binary); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"train.py": "print('ü $HOME `x`')\n", "windows.txt": "a\r\nb\r\n", "no newline": "a", "empty": "", "deep/er/with 'quote'.txt": "x\n",
		"binary": string(binary), "end.txt": "END-OF-KUOTA-FILE\n", "-dash": "x\n", "log/ignored.txt": "x\n", ".gitignore": "log/\n",
	}
	write(t, dir, files)
	if err := os.Chmod(filepath.Join(dir, "train.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(dir, "true", noQuestion); err == nil || !strings.Contains(err.Error(), "git") {
		t.Errorf("with .gitignore and without a repository: got %v", err)
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := t.TempDir()
	script, err := pack(dir, `sh -c 'test -x train.py && read line && echo "$line" && cp -R . `+out+`'`, noQuestion)
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("sh", "-c", script)
	run.Stdin = strings.NewReader("from the standard input\n")
	run.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if printed, err := run.CombinedOutput(); err != nil || string(printed) != "from the standard input\n" {
		t.Fatalf("%v: %s", err, printed)
	}
	delete(files, "log/ignored.txt")
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s is %.40q, want %.40q: %v", name, got, want, err)
		}
	}
	for _, name := range []string{".git", "log", ".kuota"} {
		if _, err := os.Stat(filepath.Join(out, name)); err == nil {
			t.Errorf("%s is packed", name)
		}
	}
}

// TestPackLimits packs 300 files of 600 KiB, refuses 5 MiB with what to do, and asks before it sends
// what probably is secret.
func TestPackLimits(t *testing.T) {
	many, large, secret := t.TempDir(), t.TempDir(), t.TempDir()
	for i := range 300 {
		write(t, many, map[string]string{fmt.Sprintf("package%d/module%d.py", i%10, i): source(i)})
	}
	script, err := pack(many, "true", noQuestion)
	if err != nil {
		t.Error(err)
	}
	if out, err := exec.Command("sh", "-c", strings.Replace(script, "exec true", `exec sh -c 'find . -type f | wc -l; cat $(find . -type f) | wc -c'`, 1)).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "300\n") {
		t.Errorf("%v: %s", err, out)
	} else {
		t.Logf("300 files and bytes: %s in %d KiB", out, len(script)>>10)
	}
	noise := make([]byte, 5<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	write(t, large, map[string]string{"data.bin": string(noise)})
	for _, want := range []string{"volume", "image", "git"} {
		if _, err := pack(large, "true", noQuestion); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	outside, linked := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"id": "secret\n"})
	write(t, linked, map[string]string{"a/real.py": "x\n"})
	if err := os.Symlink("a/real.py", filepath.Join(linked, "inside.py")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(linked, "true", noQuestion); err != nil {
		t.Errorf("a link within the folder: %v", err)
	}
	if err := os.Symlink(filepath.Join(outside, "id"), filepath.Join(linked, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(linked, "true", noQuestion); err == nil || !strings.Contains(err.Error(), "notes.txt cannot be sent") {
		t.Errorf("a link out of the folder: got %v, want a refusal", err)
	}
	ignored := t.TempDir()
	write(t, ignored, map[string]string{".gitignore": "*.txt\n", "key.txt": "secret\n", "a.py": "x\n"})
	if out, err := exec.Command("git", "-C", ignored, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink("key.txt", filepath.Join(ignored, "settings")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(ignored, "true", noQuestion); err == nil || !strings.Contains(err.Error(), "not sent") {
		t.Errorf("a link to what is left out: got %v, want a refusal", err)
	}
	write(t, secret, map[string]string{".env": "KEY=1\n", "a.py": "\n"})
	if _, err := pack(secret, "true", noQuestion); err == nil || !strings.Contains(err.Error(), "The team can read .env") || !strings.Contains(err.Error(), "--secret") {
		t.Errorf("got %v, want a question", err)
	}
	if _, err := pack(secret, "true", func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}

// source is a file of Python of about 2 KiB.
func source(i int) string {
	var b strings.Builder
	for n := 0; b.Len() < 2048; n++ {
		fmt.Fprintf(&b, "def step_%d_%d(model, batch):\n    loss = model(batch[%d]).mean() * %d\n    loss.backward()\n    return loss.item()\n\n", i, n, (i*7+n*13)%97, (i*31+n*17)%1009)
	}
	return b.String()
}
