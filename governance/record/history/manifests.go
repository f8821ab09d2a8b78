package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"io"
	"time"
)

const (
	// ManifestRetention is how long manifests are kept, if history is not deleted earlier.
	ManifestRetention = 90 * 24 * time.Hour

	maxManifest = 256 << 10 // compressed, in bytes
)

// KeepManifest records the manifest of a task. One that is recorded already does not
// change, and one that compresses to more than 256 KiB is not recorded. Each replica
// records what it submits, so that no term is necessary.
func (s *Store) KeepManifest(ctx context.Context, uid string, at time.Time, text string) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if packed.Len() > maxManifest {
		return nil
	}
	return s.writeAny(ctx, "keep a manifest", func(t *tx) error {
		return t.exec("INSERT INTO manifests (uid, kept, text) VALUES (?, ?, ?) ON CONFLICT (uid) DO NOTHING", uid, toMillis(at), packed.Bytes())
	})
}

// Manifest returns the manifest of a task; ok is false if none is kept.
func (s *Store) Manifest(ctx context.Context, uid string) (text string, ok bool, err error) {
	var packed []byte
	err = s.read(ctx, "read a manifest", func(t *tx) error {
		return t.queryRow("SELECT text FROM manifests WHERE uid = ?", []any{uid}, &packed)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", false, err
	}
	unpacked, err := io.ReadAll(z)
	return string(unpacked), err == nil, err
}

// WithManifest returns those of these tasks, by UID, whose manifest is kept.
func (s *Store) WithManifest(ctx context.Context, uids []string) (kept map[string]bool, err error) {
	kept = map[string]bool{}
	err = keyBatches(uids, func(list string, args []any) error {
		return s.read(ctx, "list manifests", func(t *tx) error {
			found, err := values[string](t, "SELECT uid FROM manifests WHERE uid IN ("+list+")", args...)
			for _, uid := range found {
				kept[uid] = true
			}
			return err
		})
	})
	return kept, err
}
