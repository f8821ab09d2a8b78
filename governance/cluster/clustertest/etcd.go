package clustertest

import (
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd returns a client of the cluster's etcd, for tests that need more objects than the API
// server writes in minutes. Its port is the second after that of the API server.
func (c *Cluster) Etcd(t testing.TB) *clientv3.Client {
	t.Helper()
	pki := func(file string) string { return filepath.Join(c.Dir, "pki", file) }
	info := transport.TLSInfo{CertFile: pki("etcd-client.crt"), KeyFile: pki("etcd-client.key"), TrustedCAFile: pki("etcd-ca.crt")}
	config, err := info.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(host.Port())
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://127.0.0.1:" + strconv.Itoa(port+2)}, TLS: config, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}
