package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// writeCertificate makes the webhooks' certificate in the place of Kueue, and
// puts it where Kueue keeps it (a Secret) and where it reads it (a folder, on
// which a cluster would mount that Secret). Kueue checks it, finds it good, and
// only announces its authority.
func (k *kueueUnit) writeCertificate(ctx context.Context) error {
	ca, err := newRSAAuthority("kueue-ca", "kueue")
	if err != nil {
		return err
	}
	host := webhookService + "." + kueueNamespace + ".svc"
	cert, key, err := ca.issue(identity{name: host, hosts: []string{host}})
	if err != nil {
		return err
	}
	data := map[string]any{}
	for name, b := range map[string][]byte{"ca.crt": ca.certPEM, "ca.key": ca.keyPEM, "tls.crt": cert, "tls.key": key} {
		data[name] = base64.StdEncoding.EncodeToString(b)
	}
	err = k.api.apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": kueueSecret, "namespace": kueueNamespace},
		"data":     data,
	}})
	if err != nil {
		return err
	}
	return k.copyCertificate(ctx)
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// copyCertificate does what mounting the Secret does in a cluster.
func (k *kueueUnit) copyCertificate(ctx context.Context) error {
	if err := os.MkdirAll(k.place.certDir, 0o700); err != nil {
		return fmt.Errorf("folder of Kueue's certificate: %w", err)
	}
	s, err := k.api.dyn.Resource(secrets).Namespace(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Kueue's certificate: %w", err)
	}
	data, _, _ := unstructured.NestedStringMap(s.Object, "data")
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		b, err := base64.StdEncoding.DecodeString(data[name])
		if err != nil || len(b) == 0 {
			return fmt.Errorf("Kueue's certificate has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(k.place.certDir, name), b, 0o600); err != nil {
			return fmt.Errorf("write Kueue's certificate: %w", err)
		}
	}
	return nil
}
