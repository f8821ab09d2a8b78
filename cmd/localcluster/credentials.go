package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// kueueAccount is the service account of Kueue's shipped install. The process
// presents a certificate of that name, so that its own RBAC rules apply to it,
// and admission policies see the same user as in a cluster.
const kueueAccount = "system:serviceaccount:kueue-system:kueue-controller-manager"

// consoleAccount is the service account that deploy/rbac gives the console, for
// the same reason.
const consoleAccount = "system:serviceaccount:" + consoleNamespace + ":kuota"

// clients are those who speak to the API server, each with its own kubeconfig.
var clients = map[string]identity{
	"admin":                   {name: "kubernetes-admin", groups: []string{"system:masters"}},
	"kube-controller-manager": {name: "system:kube-controller-manager"},
	"kube-scheduler":          {name: "system:kube-scheduler"},
	"kueue":                   {name: kueueAccount, groups: []string{"system:serviceaccounts", "system:serviceaccounts:kueue-system"}},
	"kuota":                   {name: consoleAccount, groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + consoleNamespace}},
	"kwok":                    {name: "kwok", groups: []string{"system:masters"}},
}

// makeCredentials writes all keys, certificates and kubeconfigs of one run.
func makeCredentials(l layout, apiPort int) error {
	cluster, err := newAuthority("kubernetes-ca")
	if err != nil {
		return err
	}
	// The proxy's and etcd's authorities are separate: a client certificate of
	// the cluster must neither speak for others nor open the store.
	proxy, err := newAuthority("front-proxy-ca")
	if err != nil {
		return err
	}
	store, err := newAuthority("etcd-ca")
	if err != nil {
		return err
	}
	for name, ca := range map[string]*authority{"ca": cluster, "front-proxy-ca": proxy, "etcd-ca": store} {
		if err := l.writePair(name, ca.certPEM, ca.keyPEM); err != nil {
			return err
		}
	}
	for name, c := range map[string]struct {
		ca *authority
		id identity
	}{
		"apiserver":          {cluster, identity{name: "kube-apiserver", hosts: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"}}},
		"component":          {cluster, identity{name: "localcluster-component"}},
		"front-proxy-client": {proxy, identity{name: "front-proxy-client"}},
		"etcd":               {store, identity{name: "etcd"}},
		"etcd-client":        {store, identity{name: "kube-apiserver"}},
	} {
		cert, key, err := c.ca.issue(c.id)
		if err != nil {
			return err
		}
		if err := l.writePair(name, cert, key); err != nil {
			return err
		}
	}
	if err := makeAccountKeys(l); err != nil {
		return err
	}
	for name, id := range clients {
		if err := writeKubeconfig(l, cluster, name, id, apiPort); err != nil {
			return err
		}
	}
	return nil
}

// makeAccountKeys makes the pair that signs and checks service account tokens.
func makeAccountKeys(l layout) error {
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	if err := os.WriteFile(l.pki("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), 0o644); err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	return os.WriteFile(l.pki("sa.key"), keyPEM, 0o600)
}

func writeKubeconfig(l layout, ca *authority, name string, id identity, apiPort int) error {
	cert, key, err := ca.issue(id)
	if err != nil {
		return err
	}
	b, err := yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "localcluster",
		"clusters": []any{map[string]any{"name": "localcluster", "cluster": map[string]any{
			"server": "https://" + loopback(apiPort), "certificate-authority-data": ca.certPEM,
		}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{
			"client-certificate-data": cert, "client-key-data": key,
		}}},
		"contexts": []any{map[string]any{"name": "localcluster", "context": map[string]any{
			"cluster": "localcluster", "user": name,
		}}},
	})
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	path := l.componentConfig(name)
	if name == "admin" {
		path = l.kubeconfig()
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	return nil
}
