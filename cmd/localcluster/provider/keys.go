package provider

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// keys sign ID tokens and encrypt access tokens. They are in a file, so that
// tokens stay valid when the provider restarts.
type keys struct {
	Sign   jose.JSONWebKey `json:"sign"` // RSA: clients have to support RS256 only
	Crypto [32]byte        `json:"crypto"`
}

func loadKeys(path string) (*keys, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return createKeys(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	var k keys
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", path, err)
	}
	return &k, nil
}

func createKeys(path string) (*keys, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	k := &keys{Sign: jose.JSONWebKey{KeyID: rand.Text(), Key: key}}
	_, _ = rand.Read(k.Crypto[:]) // never fails
	return k, writeJSON(path, k)
}

// writeJSON replaces a file atomically. Only the owner can read it.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// signingKey and publicKey implement the library's interfaces of a key pair.
type (
	signingKey struct{ *keys }
	publicKey  struct{ *keys }
)

var (
	_ op.SigningKey = signingKey{}
	_ op.Key        = publicKey{}
)

func (k signingKey) ID() string                                  { return k.Sign.KeyID }
func (k signingKey) Key() any                                    { return k.Sign.Key }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k publicKey) ID() string                         { return k.Sign.KeyID }
func (k publicKey) Key() any                           { return k.Sign.Public().Key }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
