package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

const (
	version  = "v0.0.0-test"
	revision = "0123456789abcdef0123456789abcdef01234567"
	user     = 65532
)

// skipped is why the tests do not run, or empty.
func skipped() string {
	switch {
	case os.Getenv("KUOTA_VERIFY") == "":
		return "builds images for several minutes: run by make verify"
	case os.Getuid() != 0:
		return "building and running an image needs root"
	}
	return ""
}

func TestMain(m *testing.M) {
	if skipped() != "" { // no cluster for nothing
		os.Exit(m.Run())
	}
	clustertest.Main(m)
}

// TestImage builds the image from the Dockerfile for both platforms, without a
// registry, and runs the one for this machine as its own user on a read-only root
// file system against a real cluster.
func TestImage(t *testing.T) {
	if reason := skipped(); reason != "" {
		t.Skip(reason)
	}
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			image := build(t, arch)
			checkConfig(t, image, arch)
			root := unpack(t, image)
			checkFiles(t, root, machine)
			if arch != runtime.GOARCH {
				return
			}
			want := fmt.Sprintf("kuota %s, revision %s, %s, linux/%s\n", version, revision, runtime.Version(), arch)
			if got := start(t, root, t.TempDir(), "version").wait(t); got != want {
				t.Errorf("kuota version (-want +got):\n%s", cmp.Diff(want, got))
			}
			checkConsole(t, root)
		})
	}
}

// build builds the image with make image and returns its name.
func build(t *testing.T, arch string) string {
	t.Helper()
	image := "localhost/kuota-test:" + arch
	cache := filepath.Join(storage(t), "cache-"+arch)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	modules := strings.TrimSpace(run(t, "go", "env", "GOMODCACHE"))
	run(t, "make", "-C", clustertest.Root(), "image", "PLATFORM=linux/"+arch, "IMAGE="+image, "VERSION="+version, "REVISION="+revision,
		"IMAGE_ARGS=--isolation chroot --pull=never --quiet --volume "+modules+":/go/pkg/mod --volume "+cache+":/root/.cache/go-build")
	return image
}

// storage returns the folder that install.sh filled.
func storage(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUOTA_IMAGES")
	if _, err := os.Stat(filepath.Join(dir, "storage.conf")); dir == "" || err != nil {
		t.Fatalf("KUOTA_IMAGES=%q has no base image: run make builder, and set it to .local/images", dir)
	}
	return dir
}

// run runs a program with the storage of images and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(storage(t), "storage.conf"))
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

func checkConfig(t *testing.T, image, arch string) {
	t.Helper()
	var inspected struct {
		OCIv1 struct {
			OS, Architecture string
			Config           struct {
				User       string
				Entrypoint []string
				Labels     map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(run(t, "buildah", "inspect", "--type", "image", image)), &inspected); err != nil {
		t.Fatal(err)
	}
	got := inspected.OCIv1
	labels := map[string]string{}
	for key, value := range got.Config.Labels {
		if name, ok := strings.CutPrefix(key, "org.opencontainers.image."); ok && name != "description" && name != "source" {
			labels[name] = value
		}
	}
	if diff := cmp.Diff(map[string]string{"title": "Kuota", "version": version, "revision": revision, "licenses": "Apache-2.0"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got.OS != "linux" || got.Architecture != arch || got.Config.User != fmt.Sprintf("%d:%d", user, user) || !cmp.Equal(got.Config.Entrypoint, []string{"/kuota"}) {
		t.Errorf("the image is for %s/%s, user %q, entry point %q", got.OS, got.Architecture, got.Config.User, got.Config.Entrypoint)
	}
}

// unpack mounts the root file system of an image and returns its path.
func unpack(t *testing.T, image string) string {
	t.Helper()
	container := strings.TrimSpace(run(t, "buildah", "from", "--pull=never", image))
	t.Cleanup(func() { run(t, "buildah", "rm", container) })
	return strings.TrimSpace(run(t, "buildah", "mount", container))
}

// checkFiles checks that the image has three files and that the binary is static.
func checkFiles(t *testing.T, root string, machine elf.Machine) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/LICENSE", "/etc/ssl/certs/ca-certificates.crt", "/kuota"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	binary, err := elf.Open(filepath.Join(root, "kuota"))
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if binary.Machine != machine {
		t.Errorf("the binary is for %s, want %s", binary.Machine, machine)
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the binary is linked dynamically")
		}
	}
}

// checkConsole runs the console of the image, with history on a volume.
func checkConsole(t *testing.T, root string) {
	t.Helper()
	c := clustertest.Get(t)
	volume := t.TempDir()
	// Without sign-in, the user of the page has the permissions of the kubeconfig.
	kubeconfig, err := os.ReadFile(filepath.Join(c.Dir, "kubeconfig"))
	if err == nil {
		err = os.WriteFile(filepath.Join(volume, "kubeconfig"), kubeconfig, 0o600)
	}
	if err := errors.Join(err, os.Chown(volume, user, user), os.Chown(filepath.Join(volume, "kubeconfig"), user, user)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	console := start(t, root, volume, "serve", "--kubeconfig", "/volume/kubeconfig", "--listen", address, "--history", "/volume/history.db")
	clustertest.Eventually(t, time.Minute, console.answers("http://"+address+"/readyz"))
	response, err := http.Get("http://" + address + "/settings")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text := page.Find("#settings-console").Text(); !strings.Contains(text, version) || !strings.Contains(text, revision) {
		t.Errorf("the settings show %q, want version %s and revision %s", text, version, revision)
	}
	if _, err := os.Stat(filepath.Join(volume, "history.db")); err != nil {
		t.Errorf("history is not on the volume: %v", err)
	}
	if err := console.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if log := console.wait(t); strings.Contains(log, "read-only file system") {
		t.Errorf("the console wrote outside of its volume:\n%s", log)
	}
}
