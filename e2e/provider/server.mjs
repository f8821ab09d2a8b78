// A certified OpenID Connect provider for tests: its own sign-in pages take
// any user name and any password. Groups are read from a file, so that a test
// changes them: {"ada": ["vision-team"]}. Usage: server.mjs GROUPS-FILE [ADDRESS
// CERTIFICATE KEY CONSOLE]; prints its issuer. With an address it serves HTTPS
// there, for a console at the URL CONSOLE, else HTTP for consoles on loopback.
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import Provider from "oidc-provider";

const [groups, address, cert, key, url] = process.argv.slice(2);
const server = address ? https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }) : http.createServer();
server.listen(0, address ?? "127.0.0.1", () => {
  const issuer = `${address ? "https" : "http"}://${server.address().address}:${server.address().port}`;
  const allowed = address ? { test: (uri) => uri.startsWith(`${url}/auth/`) } : /^https?:\/\/127\.0\.0\.1:\d+(\/[a-z]+)?\/auth\/(callback|signed-out)$/;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "kuota", client_secret: "certified-secret", grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: ["http://127.0.0.1/auth/callback"], post_logout_redirect_uris: ["http://127.0.0.1/auth/signed-out"],
    }, {
      client_id: "kuota-cli", token_endpoint_auth_method: "none", grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"], response_types: [], redirect_uris: [],
    }],
    features: { claimsParameter: { enabled: true }, deviceFlow: { enabled: true } },
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    conformIdTokenClaims: true, // claims by userinfo only, unlike the sample provider
    cookies: { keys: ["for tests"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: JSON.parse(readFileSync(groups))[id] ?? [] }),
    }),
    issueRefreshToken: () => true,
    pkce: { required: () => true },
    ttl: { AccessToken: 300, IdToken: 300, Session: 3600, Grant: 3600, Interaction: 600, RefreshToken: 3600 },
  });
  // A console in a test listens on any port.
  provider.Client.prototype.redirectUriAllowed = (uri) => allowed.test(uri);
  provider.Client.prototype.postLogoutRedirectUriAllowed = (uri) => allowed.test(uri);
  server.on("request", provider.callback());
  console.log(`issuer ${issuer}`);
});
