package signin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity is a user as the provider confirmed it, with the names that Kubernetes
// uses. Sessions store it as JSON by field name.
type Identity struct {
	Issuer       string   // issuer and client ID
	Subject      string   // the stable ID of the user at the provider
	User         string   // name in Kubernetes
	Groups       []string // names in Kubernetes, sorted, without duplicates
	Email        string   // that the provider says is verified; empty for none
	RefreshToken string   // a secret
	IDToken      string   // hint for sign-out; a secret, and empty if longer than maxIDTokenHint
	// GroupsLeftOut reports that the provider left the groups out, because there are too
	// many, such as more than 200 at Microsoft Entra ID.
	GroupsLeftOut bool
	// Unusable are the groups of the claim that Kubernetes must not get, for the log.
	Unusable []string `json:"-"`
}

// Claims configures which claims name a user, like the flags of the API server
// (--oidc-username-claim and so on). A claim within another is named with dots, such as
// realm_access.roles.
type Claims struct {
	Username       string            // claim with the name of the user; empty means "sub"
	UsernamePrefix string            // empty means the issuer and # unless the claim is email; "-" means none
	Groups         string            // claim with the groups; empty means no groups
	GroupsPrefix   string            // prefix of each group
	Required       map[string]string // claims that must have these values
}

// reserved is the prefix of names that Kubernetes reserves. No claim may produce
// one, with or without the configured prefix.
const reserved = "system:"

// claims are the claims of an ID token and of the userinfo endpoint.
type claims map[string]json.RawMessage

// get returns a claim: one of that name, or the one that its dots lead to.
func (c claims) get(name string) (json.RawMessage, bool) {
	if value, ok := c[name]; ok {
		return value, true
	}
	outer, inner, nested := strings.Cut(name, ".")
	var within claims
	if !nested || json.Unmarshal(c[outer], &within) != nil {
		return nil, false
	}
	return within.get(inner)
}

// text returns a claim that is a text; empty for any other.
func (c claims) text(name string) (text string) {
	raw, _ := c.get(name)
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// identity returns the user and groups that the claims name.
func (c Claims) identity(issuer string, from claims) (Identity, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Required)) {
		raw, _ := from.get(name)
		var value string
		if json.Unmarshal(raw, &value) != nil || value != c.Required[name] {
			return Identity{}, refuse("Your account has no access to this console. Ask a cluster admin.", "claim %s does not have the required value", name)
		}
	}
	var id Identity
	claim := c.Username
	if claim == "" {
		claim = "sub"
	}
	name := from.text(claim)
	if strings.TrimSpace(name) == "" {
		return id, refuse(fmt.Sprintf("The sign-in provider did not report who you are: %s is missing. Tell a cluster admin.", claim), "claim %s is missing or not a string", claim)
	}
	if claim == "email" {
		// As the API server: the claim may be absent, else it must be true.
		var verified bool
		if raw, ok := from["email_verified"]; ok && (json.Unmarshal(raw, &verified) != nil || !verified) {
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
	groups, unusable, err := c.groups(from)
	if err != nil {
		return id, err
	}
	return Identity{User: user, Groups: groups, Email: verifiedEmail(from), GroupsLeftOut: c.leftOut(from), Unusable: unusable}, nil
}

// maxEmail is the length of the longest address of mail (RFC 5321).
const maxEmail = 254

// verifiedEmail returns the address of mail that the claims say is verified; empty for none.
// A claim that is absent verifies nothing: mail goes to the address.
func verifiedEmail(from claims) string {
	var verified bool
	if json.Unmarshal(from["email_verified"], &verified) != nil || !verified {
		return ""
	}
	address := from.text("email")
	if parsed, err := mail.ParseAddress(address); err != nil || parsed.Address != address || len(address) > maxEmail {
		return ""
	}
	return address
}

// leftOut reports whether the provider names another source of the groups instead of the
// groups (OpenID Connect Core 1.0, 5.6.2).
func (c Claims) leftOut(from claims) bool {
	var names map[string]json.RawMessage
	if _, there := from.get(c.Groups); there || c.Groups == "" || json.Unmarshal(from["_claim_names"], &names) != nil {
		return false
	}
	return names[c.Groups] != nil
}

// groups returns the groups that the claims name, and those that Kubernetes must not get:
// a provider sends all groups of an account.
func (c Claims) groups(from claims) (groups, unusable []string, err error) {
	raw, ok := from.get(c.Groups)
	if c.Groups == "" || !ok || string(raw) == "null" {
		return nil, nil, nil
	}
	var names []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		names = []string{one}
	} else if err := json.Unmarshal(raw, &names); err != nil {
		return nil, nil, refuse("The sign-in provider reported your groups in an unsupported format. Tell a cluster admin.", "claim %s: %w", c.Groups, err)
	}
	groups = make([]string, 0, len(names))
	for _, name := range names {
		group, err := kubernetesName(c.GroupsPrefix, name)
		if err != nil {
			unusable = append(unusable, truncated(name))
			continue
		}
		groups = append(groups, group)
	}
	slices.Sort(groups)
	return slices.Compact(groups), unusable, nil
}

// kubernetesName returns the name of a claim with its prefix. It rejects names that
// must not be used in an impersonation header.
func kubernetesName(prefix, name string) (string, error) {
	full := prefix + name
	if strings.HasPrefix(name, reserved) || strings.HasPrefix(full, reserved) {
		return "", refuse(fmt.Sprintf("Your account has the name %q, which is reserved by Kubernetes. Ask the admin of the sign-in provider.", truncated(name)), "a claim contains %q", name)
	}
	// U+FFFD replaces invalid UTF-8: two names that differ only there would be one.
	// Invisible and bidirectional control characters make one user look like
	// another.
	invalid := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) || r == utf8.RuneError }
	if name == "" || strings.ContainsFunc(full, invalid) || strings.TrimSpace(name) != name || strings.TrimSpace(full) != full {
		return "", refuse("Your account has a name or group that is empty, starts or ends with a space, or has control, invisible or invalid characters. Ask the admin of the sign-in provider.", "a claim contains %q", name)
	}
	return full, nil
}

// truncated returns the first 60 characters of a name.
func truncated(name string) string {
	const most = 60
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
