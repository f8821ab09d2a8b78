package signin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity is who the provider says somebody is, in the names that Kubernetes
// knows them by.
type Identity struct {
	Issuer       string   // the provider, and the client that this console is there
	Subject      string   // the provider's own, stable name for the person
	User         string   // as Kubernetes knows them
	Groups       []string // as Kubernetes knows them, sorted, each once
	RefreshToken string   // asks the provider again; a secret
	IDToken      string   // names the person to the provider at sign-out; a secret, and empty when it is long
}

// Claims say which claims name a user, as the flags of the API server of the
// same names do (--oidc-username-claim and so on).
type Claims struct {
	Username       string            // claim that holds the user's name; "sub" when empty
	UsernamePrefix string            // before it; empty means the issuer and # unless the claim is email, "-" means none
	Groups         string            // claim that holds the groups; empty for none
	GroupsPrefix   string            // before each group
	Required       map[string]string // claims that must have these values
}

// reserved is how names begin that Kubernetes keeps for itself. Nobody gets
// one from a claim, with or without a prefix.
const reserved = "system:"

// claims are those of an ID token, with those of the userinfo endpoint where
// the token has none.
type claims map[string]json.RawMessage

// identity reads the names out of the claims.
func (c Claims) identity(issuer string, from claims) (Identity, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Required)) {
		var value string
		if json.Unmarshal(from[name], &value) != nil || value != c.Required[name] {
			return Identity{}, refuse("Your account has no access to this console. Ask a cluster admin.", "claim %s is not what is required", name)
		}
	}
	var id Identity
	claim := c.Username
	if claim == "" {
		claim = "sub"
	}
	var name string
	if json.Unmarshal(from[claim], &name) != nil || strings.TrimSpace(name) == "" {
		return id, refuse(fmt.Sprintf("The sign-in provider did not report who you are: %s is missing. Tell a cluster admin.", claim), "claim %s is missing or no text", claim)
	}
	if claim == "email" {
		// As the API server does: absent is fine, and anything but true is not.
		var verified bool
		if raw, given := from["email_verified"]; given && (json.Unmarshal(raw, &verified) != nil || !verified) {
			return id, refuse("Your email address is not verified at the sign-in provider. Verify it there, then sign in again.", "claim email_verified is not true")
		}
	}
	prefix := c.UsernamePrefix
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && claim != "email":
		prefix = issuer + "#"
	}
	user, err := kubernetesName(prefix, name)
	if err != nil {
		return id, err
	}
	groups, err := c.groups(from)
	if err != nil {
		return id, err
	}
	return Identity{User: user, Groups: groups}, nil
}

func (c Claims) groups(from claims) ([]string, error) {
	raw, given := from[c.Groups]
	if c.Groups == "" || !given || string(raw) == "null" {
		return nil, nil
	}
	var names []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		names = []string{one}
	} else if err := json.Unmarshal(raw, &names); err != nil {
		return nil, refuse("The sign-in provider reported your groups in an unsupported format. Tell a cluster admin.", "claim %s: %w", c.Groups, err)
	}
	groups := make([]string, 0, len(names))
	for _, name := range names {
		group, err := kubernetesName(c.GroupsPrefix, name)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// kubernetesName puts the prefix before a name from a claim, and refuses what
// must not get near an impersonation header.
func kubernetesName(prefix, name string) (string, error) {
	full := prefix + name
	if strings.HasPrefix(name, reserved) || strings.HasPrefix(full, reserved) {
		return "", refuse(fmt.Sprintf("Your account has the name %q, which is reserved by Kubernetes. Ask the admin of the sign-in provider.", truncated(name)), "a claim names %q", name)
	}
	// U+FFFD is what became of something that was no text: two names that
	// differ in nothing else would be one.
	// What cannot be seen, or turns the text around it, makes one person look
	// like another.
	odd := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) || r == utf8.RuneError }
	if name == "" || strings.ContainsFunc(full, odd) || strings.TrimSpace(name) != name || strings.TrimSpace(full) != full {
		return "", refuse("Your account has a name or group that is empty, starts or ends with a space, or has control, invisible or invalid characters. Ask the admin of the sign-in provider.", "a claim names %q", name)
	}
	return full, nil
}

// shortened is enough of a name to know it by.
func truncated(name string) string {
	const most = 60
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
