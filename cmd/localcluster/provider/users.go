package provider

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"os"
	"regexp"
	"slices"
	"sync"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"sigs.k8s.io/yaml"
)

// User is one entry of the users file.
type User struct {
	Name       string   `json:"name"` // user name
	Password   string   `json:"password"`
	FullName   string   `json:"fullName"`
	Email      string   `json:"email"`
	Groups     []string `json:"groups"`
	GroupCount int      `json:"groupCount"` // number of additional groups: group-0001 and so on
	About      string   `json:"about"`      // the purpose of the user, one line
	Disabled   bool     `json:"disabled"`
}

// mostGroups limits the size of tokens: a typing error could request many
// megabytes.
const mostGroups = 20_000

var userName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// subject returns the subject of the user's tokens. It depends on the name only,
// and does not reveal it.
func (u User) subject() string {
	sum := sha256.Sum256([]byte("kuota sample provider: " + u.Name))
	return hex.EncodeToString(sum[:16])
}

// allGroups returns the groups of the list and of groupCount. It is never nil,
// since the claim of a user without groups is an empty array.
func (u User) allGroups() []string {
	all := make([]string, 0, len(u.Groups)+u.GroupCount)
	all = append(all, u.Groups...)
	for i := range u.GroupCount {
		all = append(all, fmt.Sprintf("group-%04d", i+1))
	}
	return all
}

// ReadUsers reads and checks a users file.
func ReadUsers(path string) ([]User, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	users, err := parseUsers(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return users, nil
}

func parseUsers(b []byte) ([]User, error) {
	var users []User
	if err := yaml.UnmarshalStrict(b, &users); err != nil {
		return nil, fmt.Errorf("not a list of users: %w", err)
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("contains no user")
	}
	names, emails := map[string]bool{}, map[string]string{}
	for i := range users {
		u := &users[i]
		if u.Name == "" {
			return nil, fmt.Errorf("user %d has no name", i+1)
		}
		if err := u.check(); err != nil {
			return nil, fmt.Errorf("user %q: %w", u.Name, err)
		}
		if names[u.Name] {
			return nil, fmt.Errorf("user %q is listed twice", u.Name)
		}
		if other := emails[u.Email]; other != "" {
			return nil, fmt.Errorf("users %q and %q have the same email %s", other, u.Name, u.Email)
		}
		names[u.Name], emails[u.Email] = true, u.Name
		if u.FullName == "" {
			u.FullName = u.Name
		}
	}
	return users, nil
}

func (u User) check() error {
	if !userName.MatchString(u.Name) {
		return fmt.Errorf("a name consists of lower-case letters, digits, and . _ - between them")
	}
	if u.Password == "" {
		return fmt.Errorf("has no password")
	}
	if a, err := mail.ParseAddress(u.Email); err != nil || a.Address != u.Email {
		return fmt.Errorf("email %q is not an address", u.Email)
	}
	for _, g := range u.Groups {
		if g == "" {
			return fmt.Errorf("a group has no name")
		}
	}
	if u.GroupCount < 0 || u.GroupCount > mostGroups {
		return fmt.Errorf("groupCount is %d, and must be from 0 to %d", u.GroupCount, mostGroups)
	}
	return nil
}

// supportedClaims are the claims in the discovery document.
var supportedClaims = []string{
	"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "amr", "azp", "sid",
	"name", "preferred_username", "email", "email_verified", "groups",
}

var supportedScopes = []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail, scopeGroups, oidc.ScopeOfflineAccess}

// setClaims sets the claims of the scopes, from the current users file.
func (s *storage) setClaims(info *oidc.UserInfo, subject string, scopes []string) error {
	u, ok := s.users.bySubject(subject)
	if !ok {
		return oidc.ErrAccessDenied().WithDescription("the user was removed or is disabled")
	}
	info.Subject = subject
	for _, scope := range scopes {
		switch scope {
		case oidc.ScopeProfile:
			info.Name, info.PreferredUsername = u.FullName, u.Name
		case oidc.ScopeEmail:
			info.Email, info.EmailVerified = u.Email, true
		case scopeGroups:
			info.AppendClaims("groups", u.allGroups())
		}
	}
	return nil
}

// SetUserinfoFromRequest sets the claims of an ID token.
func (s *storage) SetUserinfoFromRequest(_ context.Context, info *oidc.UserInfo, req op.IDTokenRequest, scopes []string) error {
	switch r := req.(type) {
	case *request:
		info.AppendClaims("sid", r.session.ID)
	case *refreshRequest:
		if r.Session != "" {
			info.AppendClaims("sid", r.Session)
		}
	}
	return s.setClaims(info, req.GetSubject(), scopes)
}

// SetUserinfoFromToken sets the claims of the userinfo endpoint.
func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, tokenID, subject, _ string) error {
	g, ok := s.memory.access(tokenID)
	if !ok || g.Subject != subject {
		return oidc.ErrAccessDenied().WithDescription("the access token is no longer valid")
	}
	return s.setClaims(info, g.Subject, g.Scopes)
}

// SetUserinfoFromScopes does nothing: SetUserinfoFromRequest replaces it. The
// library calls both.
func (s *storage) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

// SetIntrospectionFromToken refuses: only the client has its tokens, and it does
// not need introspection.
func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errors.New("introspection is not supported")
}

// directory finds users. It reads the file at each call, so that an edit takes
// effect at the next request.
type directory struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	last []User
}

func newDirectory(path string, log *slog.Logger) (*directory, error) {
	users, err := ReadUsers(path)
	if err != nil {
		return nil, err
	}
	return &directory{path: path, log: log, last: users}, nil
}

// users returns the users of the file. If the file is invalid, as in the middle
// of an edit, users returns the last valid ones.
func (d *directory) users() []User {
	d.mu.Lock()
	defer d.mu.Unlock()
	users, err := ReadUsers(d.path)
	if err != nil {
		d.log.Warn("users file is invalid; the previous users stay in use", "error", err)
		return d.last
	}
	d.last = users
	return users
}

// bySubject returns an enabled user.
func (d *directory) bySubject(subject string) (User, bool) {
	users := d.users()
	i := slices.IndexFunc(users, func(u User) bool { return u.subject() == subject })
	if i < 0 || users[i].Disabled {
		return User{}, false
	}
	return users[i], true
}

// authenticate returns the user with a name and password, even if disabled.
func (d *directory) authenticate(name, password string) (User, bool) {
	for _, u := range d.users() {
		if u.Name == name && subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1 {
			return u, true
		}
	}
	return User{}, false
}
