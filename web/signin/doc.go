// Package signin is the relying party of OpenID Connect: it sends people to
// their company's provider, checks what comes back, and asks the provider
// again whether it still holds. It decides who somebody is, and nothing about
// what they may do. It knows no cookie, no session and no page.
package signin
