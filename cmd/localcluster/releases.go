package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// The ways to get the programs that have official release binaries.
const (
	binariesAuto     = "auto"     // download those with a known checksum, build the others
	binariesBuild    = "build"    // build all
	binariesDownload = "download" // an error if one of Kubernetes or etcd has no known checksum
)

//go:embed releases.txt
var knownReleases string

// downloadLimit is how long the download of one program may take.
const downloadLimit = 10 * time.Minute

// release is an official release binary that a maintainer has checked.
type release struct{ program, version, platform, sum, url, path string }

var sha256Sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseReleases reads the format that releases.txt describes.
func parseReleases(text string) ([]release, error) {
	var all []release
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 5 || len(fields) > 6 || !sha256Sum.MatchString(fields[3]) {
			return nil, fmt.Errorf("releases, line %d: %q is not PROGRAM VERSION OS/ARCH SHA256 URL [PATH]", i+1, line)
		}
		r := release{program: fields[0], version: fields[1], platform: fields[2], sum: fields[3], url: fields[4]}
		if len(fields) == 6 {
			r.path = fields[5]
		}
		all = append(all, r)
	}
	return all, nil
}

// downloads selects the release binaries for programs.
type downloads struct {
	mode     string // binariesAuto, binariesBuild or binariesDownload
	releases []release
}

// newDownloads reads the list of releases in a file, or the one of this program if the
// file is "".
func newDownloads(mode, file string) (downloads, error) {
	if !slices.Contains([]string{binariesAuto, binariesBuild, binariesDownload}, mode) {
		return downloads{}, fmt.Errorf("--binaries is %q, want %s, %s or %s", mode, binariesAuto, binariesBuild, binariesDownload)
	}
	text := knownReleases
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return downloads{}, fmt.Errorf("read releases: %w", err)
		}
		text = string(b)
	}
	releases, err := parseReleases(text)
	return downloads{mode, releases}, err
}

// release returns the release binary of a program in the version that a go.mod
// requires, and false if the program has to be built.
func (d downloads) release(t tool, goMod []byte) (release, bool, error) {
	if d.mode == binariesBuild || d.mode == "" {
		return release{}, false, nil
	}
	version, err := requiredVersion(t.pkg, goMod)
	if err != nil {
		return release{}, false, err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, r := range d.releases {
		if r.program == t.name && r.version == version && r.platform == platform {
			return r, true, nil
		}
	}
	if d.mode == binariesDownload && (strings.HasPrefix(t.pkg, "k8s.io/") || strings.HasPrefix(t.pkg, "go.etcd.io/")) {
		return release{}, false, fmt.Errorf("no checksum of %s %s for %s is known: build it, or add one to cmd/localcluster/releases.txt", t.name, version, platform)
	}
	return release{}, false, nil
}

// requiredVersion returns the version of the module of a package.
func requiredVersion(pkg string, goMod []byte) (string, error) {
	file, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return "", fmt.Errorf("read versions: %w", err)
	}
	longest, version := "", ""
	for _, r := range file.Require {
		if (pkg == r.Mod.Path || strings.HasPrefix(pkg, r.Mod.Path+"/")) && len(r.Mod.Path) > len(longest) {
			longest, version = r.Mod.Path, r.Mod.Version
		}
	}
	return version, nil
}

// download writes the program to a path if the download has the known checksum.
func (r release) download(ctx context.Context, to string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadLimit)
	defer cancel()
	begin := time.Now()
	fmt.Printf("downloading %s %s\n", r.program, r.version)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return fmt.Errorf("download %s: %w", r.program, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("download %s: %w", r.program, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("download %s: %s answers %s", r.program, r.url, response.Status)
	}
	file, err := os.CreateTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return fmt.Errorf("download %s: %w", r.program, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), response.Body); err != nil {
		return fmt.Errorf("download %s: %w", r.program, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != r.sum {
		return fmt.Errorf("download %s: %w: %s has %s, want %s", r.program, errChecksum, r.url, got, r.sum)
	}
	program := file.Name()
	if r.path != "" {
		if program, err = extract(file, r.path); err != nil {
			return fmt.Errorf("download %s: %w", r.program, err)
		}
		defer os.Remove(program)
	}
	if err := cmp.Or(os.Chmod(program, 0o755), os.Rename(program, to)); err != nil {
		return fmt.Errorf("download %s: %w", r.program, err)
	}
	fmt.Printf("  downloaded in %s\n", time.Since(begin).Round(time.Second))
	return nil
}

// errChecksum means that a download is not what a maintainer has checked. It is never
// replaced by a build, because a maintainer has to look into it.
var errChecksum = errors.New("wrong checksum")

// extract writes a file of a .tar.gz archive beside it, and returns its path.
func extract(archive *os.File, name string) (string, error) {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return "", fmt.Errorf("read the archive: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err == io.EOF {
			return "", fmt.Errorf("the archive has no %s", name)
		} else if err != nil {
			return "", fmt.Errorf("read the archive: %w", err)
		}
		if header.Name != name {
			continue
		}
		to, err := os.CreateTemp(filepath.Dir(archive.Name()), ".new-")
		if err != nil {
			return "", err
		}
		_, err = io.Copy(to, files)
		return to.Name(), cmp.Or(err, to.Close())
	}
}
