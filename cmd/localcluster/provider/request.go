package provider

import (
	"slices"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// requestLife is how long somebody may take to sign in.
const requestLife = 30 * time.Minute

// request is one authorization request, from the client's redirect until its
// code is exchanged.
type request struct {
	*oidc.AuthRequest
	id      string
	hinted  string // the subject that the client expects, from its id_token_hint
	begun   time.Time
	session session // zero until somebody has signed in
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

// accepts tells whether an earlier sign-in answers this request.
func (r *request) accepts(s session, now time.Time) bool {
	if slices.Contains(r.Prompt, oidc.PromptLogin) || slices.Contains(r.Prompt, oidc.PromptSelectAccount) {
		return false
	}
	if r.hinted != "" && r.hinted != s.Subject {
		return false
	}
	return r.MaxAge == nil || now.Sub(s.AuthTime) <= time.Duration(*r.MaxAge)*time.Second
}

// silent is a request that must be answered without asking anybody.
func (r *request) silent() bool { return slices.Contains(r.Prompt, oidc.PromptNone) }

// requests are those under way. They are in memory alone: who is just typing a
// password while the provider is stopped has to begin again.
type requests struct {
	mu    sync.Mutex
	byID  map[string]*request
	codes map[string]string // code to id
}

func newRequests() *requests {
	return &requests{byID: map[string]*request{}, codes: map[string]string{}}
}

func (q *requests) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, old := range q.byID {
		if r.begun.Sub(old.begun) > requestLife {
			q.drop(id)
		}
	}
	q.byID[r.id] = r
}

// get returns a copy, since several requests of HTTP may ask for the same.
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

// finish notes who has signed in.
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
	q.codes[code] = id
}

// takeCode finds the request of a code, once: a code that is shown again is no
// good, even where the first exchange went wrong.
func (q *requests) takeCode(code string) (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id, ok := q.codes[code]
	delete(q.codes, code)
	return id, ok
}

func (q *requests) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(id)
}

// drop forgets a request with its codes. The caller holds mu.
func (q *requests) drop(id string) {
	delete(q.byID, id)
	for code, of := range q.codes {
		if of == id {
			delete(q.codes, code)
		}
	}
}
