// Package signin is the relying party of OpenID Connect: it sends users to the
// company's provider, validates the response, and confirms identities with a
// refresh token. It decides who a user is, not what the user may do. It must
// not know cookies, sessions or pages.
//
//	Begin   → address at the provider, Attempt (state, nonce, PKCE verifier)
//	Finish  → Identity; checks state, issuer, code, ID token, nonce, userinfo
//	Refresh → Identity with current groups
//
// Errors are a [Refusal], whose message is shown to the user, or wrap
// [ErrUnavailable], where trying again may succeed.
package signin
