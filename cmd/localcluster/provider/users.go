package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"os"
	"regexp"

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
