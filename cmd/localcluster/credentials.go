package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/kwok/pkg/kwokctl/pki"
)

// adminName is the user whose kubeconfig is the instance's.
const adminName = "admin"

// identity is the user of a client of the API server.
type identity struct {
	user   string
	groups []string
}

// serviceAccount returns the user of a service account. A process with a client
// certificate of that user has the permissions of the account's RBAC rules, and
// admission policies see the same user as in a cluster.
func serviceAccount(namespace, name string) identity {
	return identity{"system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
}

// clients are the clients of the API server in every instance. Each has its own
// kubeconfig. The service accounts are those of Kueue's shipped manifests and of
// deploy/rbac.
var clients = map[string]identity{
	adminName:             {"kubernetes-admin", []string{"system:masters"}},
	controllerManagerName: {"system:kube-controller-manager", nil},
	schedulerName:         {"system:kube-scheduler", nil},
	kueueName:             serviceAccount(kueueNamespace, "kueue-controller-manager"),
	consoleName:           serviceAccount(consoleNamespace, "kuota"),
	kwokName:              {"kwok", []string{"system:masters"}},
}

// authority signs certificates. Keys are elliptic: a start creates about a
// dozen, and RSA keys would take seconds.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority returns an authority with a new key. A process that manages its own
// certificates accepts only one with an RSA key.
func newAuthority(algorithm x509.PublicKeyAlgorithm, name string, organization ...string) (authority, error) {
	now := time.Now()
	cert, key, err := pki.NewCertificateAuthority(pki.CertConfig{
		CommonName: name, Organization: organization, PublicKeyAlgorithm: algorithm,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(pki.CertificateValidity),
	})
	if err != nil {
		return authority{}, fmt.Errorf("create authority %s: %w", name, err)
	}
	return authority{cert: cert, key: key}, nil
}

func (a authority) certPEM() []byte { return pki.EncodeCertToPEM(a.cert) }

// issue returns a certificate for a client with that name and those groups, and
// for a server on loopback and under hosts, which are names or addresses.
func (a authority) issue(name string, groups []string, hosts ...string) (certPEM, keyPEM []byte, err error) {
	names := pki.AltNames{DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			names.IPs = append(names.IPs, ip)
		} else {
			names.DNSNames = append(names.DNSNames, host)
		}
	}
	cert, key, err := pki.NewCertAndKey(a.cert, a.key, pki.CertConfig{
		CommonName: name, Organization: groups, PublicKeyAlgorithm: x509.ECDSA,
		Usages:    []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		AltNames:  names,
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
	})
	if err == nil {
		keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate for %s: %w", name, err)
	}
	return pki.EncodeCertToPEM(cert), keyPEM, nil
}

// writeCredentials writes all keys, certificates and kubeconfigs of one run. It
// returns the cluster's authority. hosts are further names and addresses of the
// API server.
func writeCredentials(l layout, apiPort int, hosts ...string) (authority, error) {
	// The authorities of the front proxy and of etcd are separate: a client
	// certificate of the cluster must neither impersonate users nor open etcd.
	authorities := map[string]authority{}
	for _, name := range []string{"ca", "front-proxy-ca", "etcd-ca"} {
		ca, err := newAuthority(x509.ECDSA, name)
		if err != nil {
			return ca, err
		}
		key, err := keyutil.MarshalPrivateKeyToPEM(ca.key)
		if err := errors.Join(err, writePair(l.pki(name), ca.certPEM(), key)); err != nil {
			return ca, err
		}
		authorities[name] = ca
	}
	for file, c := range map[string]struct {
		ca, name string
		hosts    []string
	}{
		"apiserver":          {"ca", apiServerName, append(hosts, "kubernetes", "kubernetes.default", "kubernetes.default.svc")},
		"component":          {"ca", "localcluster-component", nil},
		"front-proxy-client": {"front-proxy-ca", "front-proxy-client", nil},
		"etcd":               {"etcd-ca", etcdName, nil},
		"etcd-client":        {"etcd-ca", apiServerName, nil},
	} {
		if _, _, err := authorities[c.ca].write(l.pki(file), c.name, nil, c.hosts...); err != nil {
			return authority{}, err
		}
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err := errors.Join(err, keyutil.WriteKey(l.pki("sa.key"), accountKey)); err != nil {
		return authority{}, fmt.Errorf("service account key: %w", err)
	}
	ca := authorities["ca"]
	for name, user := range clients {
		if err := ca.writeKubeconfig(l, name, user, apiPort); err != nil {
			return ca, err
		}
	}
	return ca, nil
}

// writeKubeconfig writes the kubeconfig of a client on this machine.
func (a authority) writeKubeconfig(l layout, name string, user identity, apiPort int) error {
	cert, key, err := a.issue(user.user, user.groups)
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(kubeconfig(name, httpsURL(apiPort), a.certPEM(), cert, key), l.componentConfig(name)); err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	return nil
}

func kubeconfig(user, server string, ca, cert, key []byte) clientcmdapi.Config {
	const name = "localcluster"
	return clientcmdapi.Config{
		CurrentContext: name,
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: cert, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
	}
}

// write issues a certificate and writes it to FILE.crt, and its key to FILE.key.
func (a authority) write(file, name string, groups []string, hosts ...string) (certPEM, keyPEM []byte, err error) {
	certPEM, keyPEM, err = a.issue(name, groups, hosts...)
	return certPEM, keyPEM, errors.Join(err, writePair(file, certPEM, keyPEM))
}

// writePair writes a certificate, and its key for the owner only.
func writePair(file string, cert, key []byte) error {
	return errors.Join(certutil.WriteCert(file+".crt", cert), keyutil.WriteKey(file+".key", key))
}

// writeWebhookCertificate writes the certificate of a process's webhooks to FILE.crt
// and FILE.key, where the process reads it. One that manages its own certificates also
// checks the Secret, and replaces a certificate that is not of its kind; secret is nil
// for others.
func (a apiClient) writeWebhookCertificate(ctx context.Context, ca authority, file, name string, hosts []string, secret *metav1.ObjectMeta) error {
	cert, key, err := ca.write(file, name, nil, hosts...)
	if err != nil {
		return fmt.Errorf("write certificate of %s: %w", name, err)
	}
	if secret == nil {
		return nil
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(ca.key)
	if err == nil {
		err = a.Create(ctx, &corev1.Secret{ObjectMeta: *secret, Data: map[string][]byte{
			"ca.crt": ca.certPEM(), "ca.key": caKey, "tls.crt": cert, "tls.key": key,
		}})
	}
	if err != nil {
		return fmt.Errorf("create Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// sharedPair ensures that a fixed folder, which Kueue reads and all instances on
// this machine share, has a pair that is valid for another month. An error means
// that this user cannot write there.
func sharedPair(dir string) error {
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if pairUsable(cert) {
		return nil
	}
	lock, err := lockFile(filepath.Join(dir, ".localcluster.lock"), true)
	if err != nil {
		return err
	}
	defer lock.Close()
	if pairUsable(cert) {
		return nil
	}
	ca, err := newAuthority(x509.ECDSA, "localcluster-kueue-ca")
	if err != nil {
		return err
	}
	certPEM, keyPEM, err := ca.issue("localcluster-kueue", nil)
	if err != nil {
		return err
	}
	// The certificate last: pairUsable reads it alone.
	return errors.Join(keyutil.WriteKey(key, keyPEM), certutil.WriteCert(cert, append(certPEM, ca.certPEM()...)))
}

func pairUsable(certFile string) bool {
	certs, err := certutil.CertsFromFile(certFile)
	return err == nil && time.Until(certs[0].NotAfter) > 30*24*time.Hour
}

// clientID is the console's client ID at the provider.
const clientID = "kuota"

// writeSignIn writes what the provider and the console share, and a copy of the
// users that can be edited while the instance runs.
func writeSignIn(l layout, users, issuer string) error {
	copied, err := os.ReadFile(users)
	if err != nil {
		return fmt.Errorf("read users: %w", err)
	}
	keys := make([]byte, 32)
	_, _ = rand.Read(keys) // never fails
	for name, content := range map[string]string{
		"issuer":        issuer + "\n",
		"client-id":     clientID + "\n",
		"client-secret": rand.Text() + "\n",
		"session-keys":  base64.StdEncoding.EncodeToString(keys) + "\n",
		"users.yaml":    string(copied),
	} {
		if err := os.WriteFile(l.signin(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write sign-in settings: %w", err)
		}
	}
	return nil
}
