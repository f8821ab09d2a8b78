package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// Elliptic keys because a start makes a dozen of them, and RSA would take seconds.

const certLife = 10 * 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
	keyPEM  []byte
}

// identity says whom a certificate is for: a client by name and groups, a
// server by its DNS names (and always loopback).
type identity struct {
	name   string
	groups []string
	hosts  []string
}

func newAuthority(name string) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	return selfSign(pkix.Name{CommonName: name}, key, keyPEM)
}

// newRSAAuthority is for Kueue, which reads no other kind of key for its own.
func newRSAAuthority(name, organisation string) (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	keyPEM := pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	return selfSign(pkix.Name{CommonName: name, Organization: []string{organisation}}, key, keyPEM)
}

func selfSign(subject pkix.Name, key crypto.Signer, keyPEM []byte) (*authority, error) {
	name := subject.CommonName
	tmpl := certTemplate(subject)
	tmpl.IsCA = true
	tmpl.DNSNames = []string{name} // Kueue takes an authority only when its name is here too
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &authority{cert: cert, key: key, certPEM: pemOf("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

// issue makes a certificate that serves as client and as server.
func (a *authority) issue(id identity) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	tmpl := certTemplate(pkix.Name{CommonName: id.name, Organization: id.groups})
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	tmpl.DNSNames = append([]string{"localhost"}, id.hosts...)
	tmpl.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate for %s: %w", id.name, err)
	}
	return pemOf("CERTIFICATE", der), keyPEM, nil
}

func certTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(certLife),
		BasicConstraintsValid: true,
	}
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	return key, pemOf("EC PRIVATE KEY", der), nil
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writePair stores NAME.crt and NAME.key, the key for the owner only.
func (l layout) writePair(name string, cert, key []byte) error {
	if err := os.WriteFile(l.pki(name+".crt"), cert, 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := os.WriteFile(l.pki(name+".key"), key, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}
