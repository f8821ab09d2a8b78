// Package auditevents answers API servers that send audit events. It is not a part of the
// pages: it has a server of its own.
package auditevents

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"kuota.dev/kuota/governance/record/audit/events"
	"kuota.dev/kuota/governance/record/history"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Path is where API servers send audit events.
const Path = "/audit-events"

// maxBody is the size in bytes of the longest list of events. API servers send 400 events at
// once, of which an audit policy that is made for this receiver has little.
const maxBody = 64 << 20

// Handler receives audit events. It answers 200 once what it recorded is on the disk. API
// servers send again what a server error answered, or nothing, and not what was rejected.
type Handler struct {
	// Token returns the bearer token that API servers must send.
	Token func() (string, error)
	// Add keeps an entry.
	Add func(history.Activity)
	events.Reader
	Log *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != Path:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "API servers send audit events by POST.", http.StatusMethodNotAllowed)
		return
	}
	want, err := h.Token()
	if err != nil || want == "" {
		h.Log.Error("audit events cannot be received: the file with the token cannot be read, or is empty", "error", err)
		http.Error(w, "The receiver cannot read its token.", http.StatusInternalServerError) // API servers try again
		return
	}
	if err := authenticate(r, want); err != nil {
		h.Log.Warn("audit events rejected", "from", r.RemoteAddr, "error", err)
		http.Error(w, "The bearer token is not accepted.", http.StatusUnauthorized)
		return
	}
	var list struct {
		Items []json.RawMessage `json:"items"` // of auditv1.Event, each of which may be unreadable
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&list); err != nil {
		h.Log.Warn("audit events lost: they cannot be read", "error", err)
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			http.Error(w, "Send fewer events at once: set --audit-webhook-batch-max-size.", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "This is no list of audit events of audit.k8s.io/v1.", http.StatusBadRequest)
		return
	}
	for _, item := range list.Items {
		var event auditv1.Event
		if err := json.Unmarshal(item, &event); err != nil {
			h.Log.Warn("audit event lost: it cannot be read", "bytes", len(item), "error", err)
			continue
		}
		for _, entry := range h.Entries(&event) {
			h.Add(entry)
		}
	}
}

// authenticate returns an error unless a request has the token.
func authenticate(r *http.Request, want string) error {
	scheme, got, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return errors.New("no bearer token")
	}
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return errors.New("another token")
	}
	return nil
}
