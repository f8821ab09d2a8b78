package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxPacked is how long a script can be that brings a folder, in bytes: as the form of tasks takes
	// it, and small enough for one ConfigMap.
	maxPacked = 256 << 10
	// maxSource is how much of a folder is read, in bytes: far more than fits.
	maxSource = 16 << 20
)

// sourceFile is a file of a folder that a task gets.
type sourceFile struct {
	path       string // relative, with slashes
	content    []byte
	executable bool
}

// sourceFiles returns the names of the files of a folder: without .git, and without what .gitignore
// names.
func sourceFiles(dir string) (names []string, err error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	list := exec.Command("git", "-c", "core.fsmonitor=false", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if out, err := list.Output(); err == nil {
		for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			if name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	if root := repositoryOf(dir); root != "" {
		return nil, fmt.Errorf("%s is a repository, and git does not list its files here: install git, or see git -C %s status", root, dir)
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git" && entry.IsDir():
			return fs.SkipDir
		case entry.Name() == ".git":
			return nil
		case entry.Name() == ".gitignore":
			return fmt.Errorf("%s names files to leave out, which git reads: run git init in the folder, or install git", path)
		case entry.IsDir():
			return nil
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// repositoryOf returns the folder with .git that a folder is in; empty for none.
func repositoryOf(dir string) string {
	at, err := filepath.Abs(dir)
	for ; err == nil; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
	return ""
}

// linked returns the file that a link within the folder leads to; name itself for no link. It is an
// error if that file is not among names.
func linked(dir, name string, names []string) (string, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return name, err
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return name, err
	}
	to, err := filepath.Rel(root, real)
	if info, failed := os.Stat(real); failed == nil && info.IsDir() {
		return name, nil // which is left out
	}
	if err != nil || !slices.Contains(names, filepath.ToSlash(to)) {
		return name, errors.New("it is a link to a file that is not sent")
	}
	return filepath.ToSlash(to), nil
}

// isSecret reports whether a file probably has a secret, by its name.
func isSecret(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	for _, pattern := range []string{".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*", ".netrc", ".npmrc", ".pypirc", "*credentials*", "*secret*", "kubeconfig*", "*.kubeconfig"} {
		if matched, _ := filepath.Match(pattern, base); matched {
			return true
		}
	}
	return false
}

// pack returns the script of a task that has the files of a folder, and then runs a command in
// them. ask confirms that the team may read what probably is secret.
func pack(dir, command string, ask func(question string) error) (string, error) {
	names, err := sourceFiles(dir)
	if err != nil {
		return "", err
	}
	var files []sourceFile
	var secrets []string
	total := 0
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer folder.Close()
	for _, name := range names {
		to, err := linked(dir, name, names)
		if err != nil {
			return "", fmt.Errorf("%s cannot be sent. Name it in .gitignore to leave it out: %w", clean(name), err)
		}
		info, err := folder.Stat(filepath.FromSlash(name)) // of what a link leads to
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted, and still known to git
			continue
		case err != nil: // such as a link that leads out of the folder
			return "", fmt.Errorf("%s cannot be sent. Name it in .gitignore to leave it out: %w", clean(name), err)
		case !info.Mode().IsRegular():
			continue
		}
		if total += int(min(info.Size(), maxSource)); total > maxSource {
			return "", tooLarge(dir, "more than 16 MiB", len(names))
		}
		content, err := folder.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return "", err
		}
		if isSecret(name) || isSecret(to) {
			secrets = append(secrets, name)
		}
		files = append(files, sourceFile{name, content, info.Mode()&0o111 != 0})
	}
	if len(secrets) > 0 {
		if err := ask(fmt.Sprintf("The team can read %s. Send it?", strings.Join(secrets, ", "))); err != nil {
			return "", fmt.Errorf("%w. Name it in .gitignore to leave it out; a Secret of Kubernetes keeps a key from the team: --secret", err)
		}
	}
	script, err := selfExtracting(files, command)
	if err != nil {
		return "", err
	}
	if len(script) > maxPacked {
		return "", tooLarge(dir, fmt.Sprintf("%d KiB, or %d KiB compressed", total>>10, len(script)>>10), len(files))
	}
	return script, nil
}

func tooLarge(dir, size string, files int) error {
	return fmt.Errorf("%s has %d files of %s, and a task takes %d KiB compressed. Leave files out by .gitignore, put them on a volume (-v /path=claim) or into the image, or clone them with git in the command", dir, files, size, maxPacked>>10)
}

// selfExtracting returns a shell script that writes files to a new folder and runs a command there. It
// needs what images with a shell have: mktemp, mkdir, cat, chmod, base64 and gzip.
func selfExtracting(files []sourceFile, command string) (string, error) {
	const end = "END-OF-KUOTA-FILE"
	var inner bytes.Buffer
	inner.WriteString("set -e\n")
	made := map[string]bool{".": true}
	for _, f := range files {
		name := quoted([]string{"./" + f.path})
		if dir := "./" + filepath.ToSlash(filepath.Dir(f.path)); !made[dir] {
			made[dir] = true
			fmt.Fprintf(&inner, "mkdir -p %s\n", quoted([]string{dir}))
		}
		switch {
		case len(f.content) == 0:
			fmt.Fprintf(&inner, ": >%s\n", name)
		case isPlain(f.content) && !bytes.Contains(f.content, []byte(end)):
			fmt.Fprintf(&inner, "cat >%s <<'%s'\n%s%s\n", name, end, f.content, end)
		default:
			fmt.Fprintf(&inner, "base64 -d >%s <<'%s'\n%s%s\n", name, end, lines(f.content), end)
		}
		if f.executable {
			fmt.Fprintf(&inner, "chmod +x %s\n", name)
		}
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err = zip.Write(inner.Bytes()); err == nil {
		err = zip.Close()
	}
	return fmt.Sprintf("#!/bin/sh\n# The folder that kuota run packed, and then its command.\nset -e\ncd \"$(mktemp -d)\"\nbase64 -d <<'%s' | gzip -dc >.kuota\n%s%s\nsh .kuota\nrm .kuota\nexec %s\n", end, lines(packed.Bytes()), end, command), err
}

// isPlain reports whether a shell writes text as it is: whole lines, and nothing that forms or shells
// change.
func isPlain(content []byte) bool {
	return utf8.Valid(content) && content[len(content)-1] == '\n' && !bytes.ContainsAny(content, "\x00\r")
}

// lines returns bytes in base64, in lines.
func lines(content []byte) string {
	const width = 76
	text := base64.StdEncoding.EncodeToString(content)
	var out strings.Builder
	for len(text) > 0 {
		n := min(width, len(text))
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return out.String()
}
