package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tool is built from a package of another module. go.mod lists it as a tool,
// which pins its version and checksum.
type tool struct{ name, pkg string }

// programs are built by one go build, which keeps all processors busy until the last
// one is linked.
type programs struct {
	module string // folder of the Go module
	flags  []string
	tools  []tool
	next   string // what follows the build, for messages

	downloads downloads
}

// progressInterval is how often a long build prints how far it is.
const progressInterval = 20 * time.Second

// build puts the programs into bin, from the store as far as it has them. Running
// processes keep the files that they have.
func (p programs) build(ctx context.Context, bin string) error {
	store, err := openStore()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("folder of programs: %w", err)
	}
	keys := map[string]string{}
	missing := p
	missing.tools = nil
	for _, t := range p.tools {
		downloaded, err := p.download(ctx, store, t, filepath.Join(bin, t.name))
		if err != nil {
			return err
		}
		if downloaded {
			continue
		}
		key, err := p.key(ctx, t)
		if err != nil {
			return err
		}
		keys[t.name] = key
		found, err := store.get(key, filepath.Join(bin, t.name))
		if err != nil {
			return err
		}
		if !found {
			missing.tools = append(missing.tools, t)
		}
	}
	if len(missing.tools) == 0 {
		return nil
	}
	built, err := os.MkdirTemp(bin, ".build-")
	if err != nil {
		return fmt.Errorf("folder of the build: %w", err)
	}
	defer os.RemoveAll(built)
	if err := missing.compile(ctx, built); err != nil {
		return err
	}
	for _, t := range missing.tools {
		from, to := filepath.Join(built, executable(t.pkg)), filepath.Join(bin, t.name)
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("build %s: %w", t.name, err)
		}
		if err := store.put(keys[t.name], to); err != nil {
			return err
		}
	}
	return store.prune()
}

// download writes the release binary of a program to a path, and reports false if it has
// to be built.
func (p programs) download(ctx context.Context, store programStore, t tool, to string) (bool, error) {
	goMod, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
	if err != nil {
		return false, fmt.Errorf("read versions: %w", err)
	}
	r, known, err := p.downloads.release(t, goMod)
	if err != nil || !known {
		return false, err
	}
	if found, err := store.get(r.sum, to); err != nil || found {
		return found, err
	}
	err = r.download(ctx, to)
	switch {
	case err == nil:
		return true, store.put(r.sum, to)
	case p.downloads.mode == binariesDownload || errors.Is(err, errChecksum):
		return false, err
	}
	fmt.Printf("  %v; building it instead\n", err)
	return false, nil
}

// compile writes the executables of all packages into a folder, and prints its
// progress.
func (p programs) compile(ctx context.Context, to string) error {
	var names, packages []string
	for _, t := range p.tools {
		names, packages = append(names, t.name), append(packages, t.pkg)
	}
	title := strings.Join(names, ", ")
	begin, ended := time.Now(), make(chan struct{})
	defer close(ended)
	fmt.Printf("building %s%s\n", title, p.next)
	go func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			linked, _ := os.ReadDir(to)
			fmt.Printf("  %s: %d of %d built\n", time.Since(begin).Round(time.Second), len(linked), len(packages))
		}
	}()
	// With a slash at its end, -o is a folder even for one package.
	args := append([]string{"build", "-mod=readonly", "-buildvcs=false", "-o", to + "/"}, p.flags...)
	if _, err := goTool(ctx, p.module, append(args, packages...)...); err != nil {
		return fmt.Errorf("build %s: %w", title, err)
	}
	fmt.Printf("  built in %s\n", time.Since(begin).Round(time.Second))
	return nil
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// executable returns the name that go build gives to the program of a package.
func executable(pkg string) string {
	if name := path.Base(pkg); !majorVersion.MatchString(name) {
		return name
	}
	return path.Base(path.Dir(pkg))
}

// key returns a digest of everything that determines a program: the sources, the
// versions of all modules, the flags, and the version and settings of Go.
func (p programs) key(ctx context.Context, t tool) (string, error) {
	hash := sha256.New()
	settings, err := goTool(ctx, p.module, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "CGO_ENABLED", "CC")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(hash, "%d\n%s\n%q\n%s\n", storeFormat, settings, p.flags, t.pkg)
	files := []string{"go.mod", "go.sum"}
	if strings.HasPrefix(t.pkg, ".") || strings.HasPrefix(t.pkg, modulePath) { // go.sum pins all others
		const template = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`
		list, err := goTool(ctx, p.module, "list", "-deps", "-f", template, t.pkg)
		if err != nil {
			return "", fmt.Errorf("list the sources of %s: %w", t.name, err)
		}
		folder, err := filepath.Abs(p.module)
		if err != nil {
			return "", fmt.Errorf("folder %s: %w", p.module, err)
		}
		for _, file := range strings.Fields(list) {
			relative, err := filepath.Rel(folder, file)
			if err != nil {
				return "", fmt.Errorf("source of %s: %w", t.name, err)
			}
			files = append(files, relative)
		}
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(p.module, name))
		if err != nil {
			return "", fmt.Errorf("source of %s: %w", t.name, err)
		}
		fmt.Fprintf(hash, "%s %x\n", name, sha256.Sum256(content))
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:16]), nil
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

// storeFormat changes whenever the same sources have to be built again.
const storeFormat = 1

// The store keeps what was used within storeAge, and of that the storeSize bytes that
// were used last.
const (
	storeAge  = 30 * 24 * time.Hour
	storeSize = 4 << 30
)

// programStore keeps programs by their key in the user's cache folder, for all checkouts of
// this user. Nobody else can write it.
type programStore struct{ dir string }

func openStore() (programStore, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return programStore{}, fmt.Errorf("cache folder: %w", err)
	}
	s := programStore{filepath.Join(cache, "kuota", "programs")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return programStore{}, fmt.Errorf("store of programs: %w", err)
	}
	return s, nil
}

// get copies the program with this key to a path, and reports whether the store has it.
func (s programStore) get(key, to string) (bool, error) {
	from := filepath.Join(s.dir, key)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err := copyFile(from, to, 0o755); err != nil {
		return false, fmt.Errorf("take %s from the store: %w", filepath.Base(to), err)
	}
	now := time.Now()
	_ = os.Chtimes(from, now, now) // for prune
	return true, nil
}

// put copies the program at a path into the store. It is a copy rather than a link,
// because go build overwrites files in place if it cannot rename.
func (s programStore) put(key, from string) error {
	if err := copyFile(from, filepath.Join(s.dir, key), 0o700); err != nil {
		return fmt.Errorf("store %s: %w", filepath.Base(from), err)
	}
	return nil
}

// prune deletes what has not been used for a long time, and what is too much.
func (s programStore) prune() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("prune the store: %w", err)
	}
	var files []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	size := int64(0)
	for _, f := range files {
		size += f.Size()
		if size <= storeSize && time.Since(f.ModTime()) <= storeAge {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("prune the store: %w", err)
		}
	}
	return nil
}

// copyFile writes the copy beside its target and renames it, so that no process sees a
// part of it.
func copyFile(from, to string, mode os.FileMode) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	fresh, err := os.CreateTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(fresh.Name())
		}
	}()
	_, err = io.Copy(fresh, source)
	if err = cmp.Or(err, fresh.Chmod(mode), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), to)
}
