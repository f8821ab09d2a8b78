package signintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"userinfo_endpoint": p.Issuer + "/userinfo", "jwks_uri": p.Issuer + "/keys", "end_session_endpoint": p.Issuer + "/end",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		"scopes_supported": []string{"openid", "email", "groups", "offline_access"},
	}
	maps.Copy(document, p.Metadata)
	respond(w, http.StatusOK, document)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	public := jose.JSONWebKeySet{}
	for _, key := range p.Keys {
		public.Keys = append(public.Keys, key.Public())
	}
	respond(w, http.StatusOK, public)
}

// authorize signs the user in without a prompt.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = grant{nonce: query.Get("nonce"), challenge: query.Get("code_challenge")}
	values := url.Values{"code": {code}, "state": {query.Get("state")}}
	if p.ChangeAuthorizeResponse != nil {
		p.ChangeAuthorizeResponse(values)
	}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+values.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if p.Token != nil && p.Token(w, r.PostForm) {
		return
	}
	authenticated := p.Client
	if authenticated == nil {
		authenticated = basic
	}
	if !authenticated(r) {
		respond(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	var granted grant
	var ok bool
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		granted, ok = p.codes[r.PostForm.Get("code")]
		delete(p.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		ok = ok && base64.RawURLEncoding.EncodeToString(sum[:]) == granted.challenge
	case "refresh_token":
		granted, ok = p.refreshTokens[r.PostForm.Get("refresh_token")]
		delete(p.refreshTokens, r.PostForm.Get("refresh_token"))
		granted.nonce = ""
		ok = ok && !p.Refuse
	}
	if !ok {
		respond(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	refresh := "canary-refresh-" + rand.Text()
	p.refreshTokens[refresh] = granted
	response := map[string]any{"access_token": "canary-access-" + rand.Text(), "token_type": "Bearer", "expires_in": 300, "refresh_token": refresh}
	if r.PostForm.Get("grant_type") == "authorization_code" || !p.NoIDToken {
		response["id_token"] = p.idToken(granted.nonce)
	}
	if p.ChangeTokenResponse != nil {
		p.ChangeTokenResponse(response)
	}
	respond(w, http.StatusOK, response)
}

func basic(r *http.Request) bool {
	id, secret, _ := r.BasicAuth()
	return id == ClientID && secret == ClientSecret
}

func (p *Provider) idToken(nonce string) string {
	now := time.Now()
	claims := map[string]any{"iss": p.Issuer, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	maps.Copy(claims, p.Claims)
	if p.ChangeClaims != nil {
		p.ChangeClaims(claims)
	}
	if p.Sign != nil {
		return p.Sign(claims)
	}
	return SignWith(p.Keys[0], jose.RS256, claims)
}

func (p *Provider) userinfo(w http.ResponseWriter, _ *http.Request) {
	if p.UserInfo != nil {
		respond(w, http.StatusOK, p.UserInfo())
		return
	}
	respond(w, http.StatusOK, p.Claims)
}

// echoSecrets responds with an error page that repeats the secrets of the request.
func echoSecrets(w http.ResponseWriter, r *http.Request, status int) {
	body, _ := io.ReadAll(r.Body)
	_, secret, _ := r.BasicAuth()
	http.Error(w, fmt.Sprintf("canary-page %s %s %s", r.Header.Get("Authorization"), secret, body), status)
}

func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
