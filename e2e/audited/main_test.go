package audited_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/handlers/auditevents"

	"k8s.io/client-go/util/cert"
)

var (
	receiver    string // address of the console's receiver of audit events, host:port
	environment []string
	certificate []byte // PEM
)

const token = "only-for-the-api-server-of-this-test"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kuota-audited-")
	if err == nil {
		err = configure(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	clustertest.MainWith(m, clustertest.Options{
		AuditPolicy: filepath.Join(clustertest.Root(), "deploy", "audit", "policy.yaml"), AuditWebhook: filepath.Join(dir, "webhook.yaml"),
		After: func() error { return os.RemoveAll(dir) },
	})
}

// configure writes what the API server needs to reach a console that starts later.
func configure(dir string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	receiver = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	var key []byte
	if certificate, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil); err != nil {
		return err
	}
	environment = []string{"KUOTA_AUDIT_WEBHOOK_ADDRESS=" + receiver}
	for name, text := range map[string][]byte{"TOKEN": []byte(token + "\n"), "CERT": certificate, "KEY": key} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		environment = append(environment, "KUOTA_AUDIT_WEBHOOK_"+name+"_FILE="+file)
	}
	return os.WriteFile(filepath.Join(dir, "webhook.yaml"), fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: kuota, cluster: {server: "https://%s%s", certificate-authority-data: %s}}]
users: [{name: apiserver, user: {token: %s}}]
contexts: [{name: kuota, context: {cluster: kuota, user: apiserver}}]
current-context: kuota
`, receiver, auditevents.Path, base64.StdEncoding.EncodeToString(certificate), token), 0o600)
}
