package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// visibilityDir is where Kueue's visibility server keeps its self-signed
// certificate. The path is fixed in Kueue 0.19 when it manages its certificates
// itself, and all instances on a machine share it.
const visibilityDir = "/visibility"

// makeVisibilityCert puts a lasting pair there before any Kueue looks. Kueue
// takes what it finds; but a Kueue that makes the pair itself writes two files
// one after the other, and a second one that looks in between ends.
// An error means that this user cannot use the folder.
func makeVisibilityCert(dir string) error {
	cert, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	if usablePair(cert, key) {
		return nil
	}
	lock, err := lockFile(filepath.Join(dir, ".localcluster.lock"), true)
	if err != nil {
		return err
	}
	defer lock.Close()
	if usablePair(cert, key) {
		return nil
	}
	ca, err := newAuthority("kueue-visibility-ca")
	if err != nil {
		return err
	}
	certPEM, keyPEM, err := ca.issue(identity{name: "kueue-visibility"})
	if err != nil {
		return err
	}
	if err := os.WriteFile(key, keyPEM, 0o600); err != nil {
		return fmt.Errorf("write visibility key: %w", err)
	}
	if err := os.WriteFile(cert, append(certPEM, ca.certPEM...), 0o644); err != nil {
		return fmt.Errorf("write visibility certificate: %w", err)
	}
	return nil
}

// usablePair tells whether Kueue could serve with the pair for a month more.
func usablePair(cert, key string) bool {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	return err == nil && time.Until(leaf.NotAfter) > 30*24*time.Hour
}
