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

// nameHeader binds what is sealed to the name it is kept under, so that one
// sealed text cannot stand in for another.
const nameHeader jose.HeaderKey = "kuota.dev/name"

// Ring seals with its first key and opens with any. What is sealed is a JWE
// in compact serialization (RFC 7516): direct encryption with A256GCM.
type Ring struct {
	keys atomic.Pointer[[]jose.JSONWebKey]
}

// NewRing reads one key a line: 32 random bytes in base64. Empty lines and
// lines that begin with # are skipped.
func NewRing(text []byte) (*Ring, error) {
	r := &Ring{}
	if err := r.Replace(text); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace takes other keys from now on; on an error the ring stays as it was.
func (r *Ring) Replace(text []byte) error {
	keys, err := parseKeys(text)
	if err == nil {
		r.keys.Store(&keys)
	}
	return err
}

// parseKeys reads keys; no error repeats what it read.
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
			return nil, fmt.Errorf("line %d is no key: each line is %d random bytes in base64, as `head -c %d /dev/urandom | base64` prints them", number, keySize, keySize)
		}
		sum := sha256.Sum256(append([]byte("kuota key id "), key...))
		keys = append(keys, jose.JSONWebKey{Key: key, KeyID: hex.EncodeToString(sum[:6])})
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return keys, nil
}

// Seal encrypts plain for the place called name.
func (r *Ring) Seal(name string, plain []byte) (string, error) {
	key := (*r.keys.Load())[0]
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: key.Key, KeyID: key.KeyID},
		(&jose.EncrypterOptions{}).WithHeader(nameHeader, name))
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	sealed, err := encrypter.Encrypt(plain)
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return sealed.CompactSerialize()
}

// Open decrypts what Seal made for the same name.
func (r *Ring) Open(name, sealed string) ([]byte, error) {
	parsed, err := jose.ParseEncryptedCompact(sealed, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	for _, key := range *r.keys.Load() {
		if key.KeyID != parsed.Header.KeyID {
			continue
		}
		plain, err := parsed.Decrypt(key.Key)
		if err != nil {
			return nil, fmt.Errorf("opening: %w", err)
		}
		if parsed.Header.ExtraHeaders[nameHeader] != name {
			return nil, errors.New("opening: it was sealed for another place")
		}
		return plain, nil
	}
	return nil, errors.New("opening: its key is not in the ring")
}
