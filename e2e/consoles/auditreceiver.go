package consoles

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/handlers/auditevents"

	"k8s.io/client-go/util/cert"
)

// AuditReceiver is the receiver of audit events of one console, which starts after the API
// server that sends them.
type AuditReceiver struct {
	Address     string // host:port
	Token       string
	Certificate []byte   // PEM
	Environment []string // of the console
	Policy      string   // file of the API server: the project's policy
	Webhook     string   // file of the API server: where it sends events
}

// NewAuditReceiver writes what a console and the API server need into a folder.
func NewAuditReceiver(dir string) (*AuditReceiver, error) {
	r := &AuditReceiver{
		Token:  "only-for-the-api-server-of-this-test",
		Policy: filepath.Join(clustertest.Root(), "deploy", "audit", "policy.yaml"), Webhook: filepath.Join(dir, "webhook.yaml"),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.Address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	r.Certificate, r.Environment = certificate, []string{"KUOTA_AUDIT_WEBHOOK_ADDRESS=" + r.Address}
	for name, text := range map[string][]byte{"TOKEN": []byte(r.Token + "\n"), "CERT": certificate, "KEY": key} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
		r.Environment = append(r.Environment, "KUOTA_AUDIT_WEBHOOK_"+name+"_FILE="+file)
	}
	return r, os.WriteFile(r.Webhook, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: kuota, cluster: {server: "https://%s%s", certificate-authority-data: %s}}]
users: [{name: apiserver, user: {token: %s}}]
contexts: [{name: kuota, context: {cluster: kuota, user: apiserver}}]
current-context: kuota
`, r.Address, auditevents.Path, base64.StdEncoding.EncodeToString(certificate), r.Token), 0o600)
}
