package signin_test

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// set changes claims, as names and values. nil removes a claim.
func set(pairs ...any) func(map[string]any) {
	return func(claims map[string]any) {
		for i := 0; i < len(pairs); i += 2 {
			claims[pairs[i].(string)] = pairs[i+1]
			if pairs[i+1] == nil {
				delete(claims, pairs[i].(string))
			}
		}
	}
}

// part encodes a header or claims as in a token.
func part(value map[string]any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func hmacSigned(claims map[string]any, key []byte) string {
	text := part(map[string]any{"alg": "HS256", "kid": "first"}) + "." + part(claims)
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// publicKey is the key as most tools print it.
func publicKey(t *testing.T, key jose.JSONWebKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Key.(*rsa.PrivateKey).Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// spoiled changes one character of base64 text.
func spoiled(text string, at int) string {
	other := "A"
	if text[at] == 'A' {
		other = "g" // its first bit differs, and the first bit always counts
	}
	return text[:at] + other + text[at+1:]
}
