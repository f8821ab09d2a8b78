package installed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
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

	"kuota.dev/kuota/deploy/charttest"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history/historytest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

const (
	onNodeHost  = "kuota.example.com"
	onNodeImage = "localhost/kuota-installed"
	onNodeTag   = "v0.0.0-installed"
)

const onNodeValues = `
replicas: 2
url: https://` + onNodeHost + `
image: {repository: ` + onNodeImage + `, tag: ` + onNodeTag + `}
signIn: {issuer: "ISSUER", clientID: kuota, usernameClaim: email, clientSecret: {name: kuota}}
sessions: {keys: {name: kuota}}
admins: {groups: [kuota-admins]}
history: {type: postgresql, postgresql: {url: {name: kuota}}}
extraCA: {name: ca}
tls: {secretName: kuota-tls}
service: {type: NodePort}
nodeSelector: {kubernetes.io/hostname: real-node}
`

// onNode is why TestRealNode runs on a cluster of its own, and no other test does.
func onNode() bool { return os.Getenv("KUOTA_IMAGES") != "" && os.Getuid() == 0 }

func TestMain(m *testing.M) {
	clustertest.MainWith(m, clustertest.Options{RealNode: onNode(), WithoutKuota: onNode()})
}

// What a user gets: the image is built from the Dockerfile, loaded into containerd, and
// installed from the chart with two replicas, with PostgreSQL and an OpenID Connect
// provider beside it. An admin signs in through the Service, saves an allocation, and a
// task is admitted. The replica that leads is deleted, helm test and helm uninstall run
// their hooks in containers, and the task runs on.
func TestRealNode(t *testing.T) {
	if !onNode() {
		t.Skip("needs root, and KUOTA_IMAGES with a base image: run by make verify")
	}
	i := newInstallation(t, "kuota", "kuota-system")
	i.importImage(t)

	// The machine's end of the link to the node is an endpoint of Service kubernetes.
	machine := i.Kubectl(t, "", "get", "endpointslices", "-n", "default", "-l", "kubernetes.io/service-name=kubernetes", "-o", "jsonpath={.items[0].endpoints[0].addresses[0]}")
	node := i.Kubectl(t, "", "get", "node", "real-node", "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	ca := newAuthority(t)
	i.createSecrets(t, ca, historytest.Start(t).Listen(t, machine))
	values := strings.Replace(onNodeValues, "ISSUER", startProvider(t, ca, machine), 1)

	release := i.installAndWait(t, values)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := i.TryKubectl("", "get", "pods,events", "-n", i.namespace)
			logs, _ := i.TryKubectl("", "logs", "-n", i.namespace, "-l", "app.kubernetes.io/instance=kuota", "--tail=100", "--prefix")
			t.Logf("%s\n%s", out, logs)
		}
	})
	if !strings.Contains(release.Info.Notes, "https://"+onNodeHost+"/auth/callback") {
		t.Errorf("the notes do not contain the redirect URI:\n%s", release.Info.Notes)
	}
	port := i.Kubectl(t, "", "get", "service", "kuota", "-n", i.namespace, "-o", "jsonpath={.spec.ports[0].nodePort}")
	admin := visit(t, "https://"+onNodeHost+"/policies?signed-in", "admin", ca.transport(net.JoinHostPort(node, port)))

	i.saveTeam(t, admin, "charted")
	i.Kubectl(t, strings.ReplaceAll(task("runs", 1, "1h"), ", kueue.x-k8s.io/priority-class: training-priority", ""), "apply", "-f", "-")
	i.waitPhase(t, "runs", "Running")
	clustertest.Eventually(t, limit, func(context.Context) error {
		status, body := admin.text(t, "https://"+onNodeHost+"/tasks/hyperpod-ns-charted/job/runs")
		if status != http.StatusOK || !strings.Contains(body, "Running") {
			return fmt.Errorf("the page of the task answers %d", status)
		}
		return nil
	})
	pod := func() string {
		return i.Kubectl(t, "", "get", "pods", "-n", "hyperpod-ns-charted", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.phase}")
	}
	before, queues := pod(), i.teamObjects(t)

	leader := i.leader(t)
	i.Kubectl(t, "", "delete", "pod", "-n", i.namespace, leader)
	i.saveTeam(t, admin, "after-the-leader")
	if now := i.leader(t); now == leader {
		t.Errorf("%s leads although it was deleted", now)
	}
	i.Kubectl(t, "", "rollout", "status", "deployment/kuota", "-n", i.namespace, "--timeout=180s")

	doctor := action.NewReleaseTesting(i.config)
	doctor.Namespace, doctor.Timeout = i.namespace, limit
	if _, shutdown, err := doctor.Run(i.name); err != nil {
		logs, _ := i.TryKubectl("", "logs", "-n", i.namespace, "kuota-doctor")
		t.Errorf("helm test: %v\n%s", err, logs)
	} else if err := shutdown(); err != nil {
		t.Error(err)
	}

	uninstall := action.NewUninstall(i.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, limit
	if _, err := uninstall.Run(i.name); err != nil {
		t.Fatal(err)
	}
	if out := i.Kubectl(t, "", "get", "validatingadmissionpolicies,clusterrolebindings", "-o", "name"); strings.Contains(out, "/kuota-workloads") || strings.Contains(out, "/kuota-console") {
		t.Errorf("the hook left %s", out)
	}
	if diff := cmp.Diff(queues, i.teamObjects(t)); diff != "" {
		t.Errorf("uninstalling changes (-before +after):\n%s", diff)
	}
	if after := pod(); after != before {
		t.Errorf("the task's pod was %s and is %s", before, after)
	}
}

// importImage builds the image and imports it into the node.
func (i *installation) importImage(t *testing.T) {
	t.Helper()
	images := os.Getenv("KUOTA_IMAGES")
	archive, cache := filepath.Join(t.TempDir(), "kuota.tar"), filepath.Join(images, "cache-"+runtime.GOARCH)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.Command(name, args...)
		command.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(images, "storage.conf"))
		var errs bytes.Buffer
		command.Stderr = &errs
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errs.Bytes())
		}
		return strings.TrimSpace(string(out))
	}
	image := onNodeImage + ":" + onNodeTag
	run("make", "-C", clustertest.Root(), "image", "PLATFORM=linux/"+runtime.GOARCH, "IMAGE="+image, "VERSION="+onNodeTag, "REVISION=none",
		"IMAGE_ARGS=--isolation chroot --pull=never --quiet --volume "+run("go", "env", "GOMODCACHE")+":/go/pkg/mod --volume "+cache+":/root/.cache/go-build")
	run("buildah", "push", "--quiet", image, "oci-archive:"+archive+":"+image)
	run(filepath.Join(clustertest.Root(), ".local", "bin", "localcluster"), "import", archive, "--dir", i.Dir)
}

// authority signs the certificates of the console and the provider.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	ca := authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}}
	var err error
	if ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	ca.pem = ca.sign(t, ca.certificate, &ca.key.PublicKey)
	return ca
}

func (a authority) sign(t *testing.T, certificate *x509.Certificate, key *ecdsa.PublicKey) string {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, a.certificate, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// issue returns a certificate for a name or an address, and its key.
func (a authority) issue(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	of := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(host); ip != nil {
		of.IPAddresses = []net.IP{ip}
	} else {
		of.DNSNames = []string{host}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, of, &private.PublicKey), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// transport trusts the authority, and reaches the console at an address.
func (a authority) transport(console string) http.RoundTripper {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.pem))
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == onNodeHost+":443" {
				address = console
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
}

const providerSecret = "certified-secret"

// createSecrets creates the Secrets and the ConfigMap that the values name.
func (i *installation) createSecrets(t *testing.T, ca authority, database string) {
	t.Helper()
	certificate, key := ca.issue(t, onNodeHost)
	sessions := make([]byte, 32)
	_, _ = rand.Read(sessions)
	for _, object := range []map[string]any{
		{"kind": "Secret", "metadata": map[string]any{"name": "kuota"}, "stringData": map[string]string{
			"client-secret": providerSecret, "session-keys": base64.StdEncoding.EncodeToString(sessions), "database-url": database}},
		{"kind": "Secret", "type": "kubernetes.io/tls", "metadata": map[string]any{"name": "kuota-tls"}, "stringData": map[string]string{"tls.crt": certificate, "tls.key": key}},
		{"kind": "ConfigMap", "metadata": map[string]any{"name": "ca"}, "data": map[string]string{"ca.crt": ca.pem}},
	} {
		object["apiVersion"] = "v1"
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		i.Kubectl(t, string(text), "apply", "-n", i.namespace, "-f", "-")
	}
}

// startProvider starts npm's oidc-provider with HTTPS at an address of this machine, and
// returns its issuer.
func startProvider(t *testing.T, ca authority, address string) string {
	t.Helper()
	browser := os.Getenv("KUOTA_BROWSER")
	if browser == "" {
		browser = filepath.Join(clustertest.Root(), ".local", "browser")
	}
	dir := t.TempDir()
	certificate, key := ca.issue(t, address)
	for name, text := range map[string]string{"groups": `{"admin": ["kuota-admins"]}`, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(filepath.Join(browser, "node"), filepath.Join(browser, "provider", "server.mjs"),
		filepath.Join(dir, "groups"), address, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), "https://"+onNodeHost)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is bound to the thread that starts the process
		started <- command.Start()
		select {}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start the provider that make browser installs: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if issuer, ok := strings.CutPrefix(scanner.Text(), "issuer "); ok {
			go func() {
				for scanner.Scan() { // drain the pipe, or the provider blocks once it is full
				}
			}()
			return issuer
		}
	}
	t.Fatal("the provider did not start")
	return ""
}

// installAndWait is helm install --wait.
func (i *installation) installAndWait(t *testing.T, values string) *releasev1.Release {
	t.Helper()
	chart, err := charttest.Load()
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(i.config)
	install.ReleaseName, install.Namespace = i.name, i.namespace
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, limit
	release, err := install.RunWithContext(t.Context(), chart, parse(t, values))
	if err != nil {
		out, _ := i.TryKubectl("", "get", "pods,events", "-n", i.namespace)
		logs, _ := i.TryKubectl("", "logs", "-n", i.namespace, "-l", "app.kubernetes.io/instance=kuota", "--tail=50", "--prefix")
		t.Fatalf("helm install --wait: %v\n%s\n%s", err, out, logs)
	}
	return release.(*releasev1.Release)
}

// saveTeam saves a new allocation in the form, and waits until it is ready.
func (i *installation) saveTeam(t *testing.T, admin visitor, name string) {
	t.Helper()
	admin.save(t, "https://"+onNodeHost+"/policies/allocations/new", "allocation-form", map[string]string{
		"team": name, "row-0-type": "ml.p5.48xlarge", "row-0-accelerators": "2",
	}, "created=")
	i.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/"+name, "--timeout=180s")
}

// leader returns the pod that leads.
func (i *installation) leader(t *testing.T) (pod string) {
	t.Helper()
	clustertest.Eventually(t, limit, func(context.Context) error {
		holder := i.Kubectl(t, "", "get", "lease", "kuota", "-n", i.namespace, "-o", "jsonpath={.spec.holderIdentity}")
		for name := range strings.FieldsSeq(i.Kubectl(t, "", "get", "pods", "-n", i.namespace, "-l", "app.kubernetes.io/name=kuota", "-o", "jsonpath={.items[*].metadata.name}")) {
			if strings.HasPrefix(holder, name+"-") {
				pod = name
				return nil
			}
		}
		return fmt.Errorf("the Lease names %q, which is no pod", holder)
	})
	return pod
}
