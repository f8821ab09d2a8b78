package session

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"
)

// keySize is the size of a key of the ring, in bytes: AES-256.
const keySize = 32

// nameHeader binds a ciphertext to the name it is stored under, so that it cannot
// replace another one.
const nameHeader jose.HeaderKey = "kuota.dev/name"

// Ring is a list of keys: it encrypts with the first and decrypts with any, so
// that keys can be rotated. Ciphertexts are JWE in compact serialization (RFC
// 7516), with direct encryption by A256GCM. It is safe for concurrent use.
type Ring struct {
	keys atomic.Pointer[[]jose.JSONWebKey]
}

// NewRing parses one key per line: 32 random bytes in base64. It skips empty
// lines and lines that begin with #.
func NewRing(text []byte) (*Ring, error) {
	r := &Ring{}
	if err := r.Replace(text); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace replaces all keys; on an error the ring does not change.
func (r *Ring) Replace(text []byte) error {
	keys, err := parseKeys(text)
	if err == nil {
		r.keys.Store(&keys)
	}
	return err
}

// parseKeys parses keys. Its errors contain no part of the text.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var keys []jose.JSONWebKey
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("line %d is not a key: each line must be %d random bytes in base64; create one with `head -c %d /dev/urandom | base64`", number, keySize, keySize)
		}
		sum := sha256.Sum256(append([]byte("kuota key id "), key...))
		keys = append(keys, jose.JSONWebKey{Key: key, KeyID: hex.EncodeToString(sum[:6])})
	}
	if len(keys) == 0 {
		return nil, errors.New("the file contains no key")
	}
	return keys, nil
}

// Seal encrypts plain and binds it to name.
func (r *Ring) Seal(name string, plain []byte) (string, error) {
	key := (*r.keys.Load())[0]
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: key.Key, KeyID: key.KeyID},
		(&jose.EncrypterOptions{}).WithHeader(nameHeader, name))
	if err != nil {
		return "", fmt.Errorf("encrypt: %w", err)
	}
	sealed, err := encrypter.Encrypt(plain)
	if err != nil {
		return "", fmt.Errorf("encrypt: %w", err)
	}
	return sealed.CompactSerialize()
}

// Open decrypts what Seal returned for the same name.
func (r *Ring) Open(name, sealed string) ([]byte, error) {
	parsed, err := jose.ParseEncryptedCompact(sealed, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	for _, key := range *r.keys.Load() {
		if key.KeyID != parsed.Header.KeyID {
			continue
		}
		plain, err := parsed.Decrypt(key.Key)
		if err != nil {
			return nil, fmt.Errorf("decrypt: %w", err)
		}
		if parsed.Header.ExtraHeaders[nameHeader] != name {
			return nil, errors.New("decrypt: encrypted for another name")
		}
		return plain, nil
	}
	return nil, errors.New("decrypt: the key is not in the ring")
}
