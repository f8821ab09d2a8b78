package provider

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// requestLife is how long an authorization request stays open.
const requestLife = 30 * time.Minute

// request is one authorization request, from the client's redirect until its
// code is exchanged.
type request struct {
	*oidc.AuthRequest
	id      string
	hinted  string // the subject that the client expects, from its id_token_hint
	created time.Time
	session session // zero until the user has signed in
	code    string  // empty before it is issued, and once it was used
}

var _ op.AuthRequest = (*request)(nil)

func (r *request) GetID() string          { return r.id }
func (r *request) GetACR() string         { return "" }
func (r *request) GetAMR() []string       { return passwordUsed }
func (r *request) GetAudience() []string  { return []string{r.ClientID} }
func (r *request) GetAuthTime() time.Time { return r.session.AuthTime }
func (r *request) GetClientID() string    { return r.ClientID }
func (r *request) GetNonce() string       { return r.Nonce }
func (r *request) GetScopes() []string    { return r.Scopes }
func (r *request) GetSubject() string     { return r.session.Subject }
func (r *request) Done() bool             { return r.session.Subject != "" }

func (r *request) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: r.CodeChallenge, Method: r.CodeChallengeMethod}
}

// passwordUsed is the authentication method of every session here.
var passwordUsed = []string{"pwd"}

// accepts reports whether an existing session answers this request.
func (r *request) accepts(s session, now time.Time) bool {
	if slices.Contains(r.Prompt, oidc.PromptLogin) || slices.Contains(r.Prompt, oidc.PromptSelectAccount) {
		return false
	}
	if r.hinted != "" && r.hinted != s.Subject {
		return false
	}
	return r.MaxAge == nil || now.Sub(s.AuthTime) <= time.Duration(*r.MaxAge)*time.Second
}

// silent reports whether the request must be answered without a page.
func (r *request) silent() bool { return slices.Contains(r.Prompt, oidc.PromptNone) }

// requests are the open authorization requests. They are in memory only: a user
// who is on the sign-in page when the provider restarts has to start again.
type requests struct {
	mu   sync.Mutex
	byID map[string]*request
}

func (q *requests) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.byID, func(_ string, old *request) bool { return r.created.Sub(old.created) > requestLife })
	q.byID[r.id] = r
}

// get returns a copy, since HTTP requests may read the same one concurrently.
func (q *requests) get(id string) (*request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.byID[id]
	if !ok {
		return nil, false
	}
	c := *r
	return &c, true
}

// finish records the session that answers a request.
func (q *requests) finish(id string, s session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.byID[id]; r != nil {
		r.session = s
	}
}

func (q *requests) saveCode(id, code string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.byID[id]; r != nil {
		r.code = code
	}
}

// takeCode returns the request of a code, once: a code is invalid afterwards, even
// if its first exchange failed.
func (q *requests) takeCode(code string) (*request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.byID {
		if r.code == code && code != "" {
			r.code = ""
			c := *r
			return &c, true
		}
	}
	return nil, false
}

func (q *requests) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byID, id)
}
