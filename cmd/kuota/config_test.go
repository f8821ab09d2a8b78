package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsOverrideEnvironmentVariables(t *testing.T) {
	env := map[string]string{"KUOTA_LISTEN": "127.0.0.1:9000", "KUOTA_COHORT": "pool", "KUOTA_HISTORY_KEEP": "50h", "KUOTA_KUBE_QPS": "50"}
	c, err := parseConfig([]string{"--cohort", "flag-wins", "--kube-burst=9", "--prometheus-timeout=1s"}, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if c.listen != "127.0.0.1:9000" || c.naming.Cohort != "flag-wins" || c.historyKeep != 50*time.Hour || !slices.Equal(c.retired, []string{"kube-burst", "prometheus-timeout", "kube-qps"}) || c.naming.Prefix != "hyperpod-ns-" {
		t.Errorf("got %+v", c)
	}
}

func TestConfigErrorListsAllInvalidValues(t *testing.T) {
	env := map[string]string{"KUOTA_HISTORY_KEEP": "long"}
	_, err := parseConfig([]string{"--name-prefix", "Bad_", "--log-level", "loud", "--cohort", "A B"}, func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"KUOTA_HISTORY_KEEP", "name-prefix", "log-level", "cohort"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not contain %q: %v", want, err)
		}
	}
}

// A configuration with an error in its sign-in settings must not start a console
// without sign-in.
func TestConfigRejectsInvalidValues(t *testing.T) {
	dir := t.TempDir()
	keys, invalid := filepath.Join(dir, "keys"), filepath.Join(dir, "invalid")
	for file, text := range map[string]string{keys: base64.StdEncoding.EncodeToString(make([]byte, 32)), invalid: "no certificate"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	valid := []string{"--oidc-issuer", "https://login.example.com", "--oidc-client-id", "kuota", "--session-keys-file", keys}
	if _, err := parseConfig(valid, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://kuota.example.com": "", "https://kuota.example.com/": "", "https://apps.example.com/kuota": "/kuota", "https://apps.example.com/a/b.c_d-e~F9": "/a/b.c_d-e~F9",
	} {
		c, err := parseConfig(append([]string{"--url", address}, valid...), func(string) string { return "" })
		if err != nil || basePath(c.url) != want {
			t.Errorf("%s: got base path %q, %v, want %q", address, basePath(c.url), err, want)
		}
	}
	utilization := []string{"--prometheus-url", "https://prometheus.example.com/prod", "--prometheus-token-file", keys, "--prometheus-match", `cluster="prod", job=~"dcgm|node"`, "--idle-after", "1h", "--idle-below", "0.1"}
	if c, err := parseConfig(utilization, func(string) string { return "" }); err != nil || c.hardware.idleAfter != time.Hour {
		t.Fatal(c.hardware, err)
	}
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want []string
	}{
		"a misspelled issuer":                   {env: map[string]string{"KUOTA_ODIC_ISSUER": "https://x", "KUOTA_OIDC_CLIENT_ID": "kuota", "KUOTA_SESSION_KEYS_FILE": keys}, want: []string{"oidc-client-id is set", "session-keys-file is set"}},
		"an argument":                           {args: append([]string{"now"}, valid...), want: []string{`"now"`}},
		"two values of a wrong type":            {args: []string{"--history-keep", "x", "--session-idle", "soon"}, want: []string{"history-keep", "session-idle"}},
		"listening on all addresses, no issuer": {args: []string{"--listen", ":8080"}, want: []string{"127.0.0.1"}},
		"no external URL":                       {args: append([]string{"--listen", ":8443"}, valid...), want: []string{"url: set"}},
		"a loopback URL":                        {args: append([]string{"--listen", ":8443", "--url", "http://127.0.0.1:8443"}, valid...), want: []string{"this is a loopback address"}},
		"unencrypted sessions":                  {args: append([]string{"--url", "http://kuota.example.com"}, valid...), want: []string{"use https"}},
		"a port beyond all":                     {args: append([]string{"--url", "https://kuota.example.com:99999"}, valid...), want: []string{"a port from 1 to 65535"}},
		"many hosts":                            {args: append([]string{"--url", "https://*.example.com"}, valid...), want: []string{"the name of one host"}},
		"a default port":                        {args: append([]string{"--url", "https://kuota.example.com:443"}, valid...), want: []string{"remove the default port"}},
		"a fragment":                            {args: append([]string{"--url", "https://kuota.example.com/x#y"}, valid...), want: []string{"nothing else"}},
		"an empty fragment":                     {args: append([]string{"--url", "https://kuota.example.com/x#"}, valid...), want: []string{"nothing else"}},
		"a query":                               {args: append([]string{"--url", "https://kuota.example.com/x?y=z"}, valid...), want: []string{"nothing else"}},
		"an empty query":                        {args: append([]string{"--url", "https://kuota.example.com/x?"}, valid...), want: []string{"nothing else"}},
		"a base path with a slash at its end":   {args: append([]string{"--url", "https://kuota.example.com/x/"}, valid...), want: []string{"without a slash at its end"}},
		"two slashes":                           {args: append([]string{"--url", "https://kuota.example.com//"}, valid...), want: []string{"without a slash at its end"}},
		"an empty segment":                      {args: append([]string{"--url", "https://kuota.example.com/x//y"}, valid...), want: []string{"base path"}},
		"a segment of two dots":                 {args: append([]string{"--url", "https://kuota.example.com/x/../y"}, valid...), want: []string{"base path"}},
		"a segment of one dot":                  {args: append([]string{"--url", "https://kuota.example.com/./x"}, valid...), want: []string{"base path"}},
		"an encoded base path":                  {args: append([]string{"--url", "https://kuota.example.com/%6buota"}, valid...), want: []string{"letters, digits"}},
		"encoded dots":                          {args: append([]string{"--url", "https://kuota.example.com/x/%2e%2e"}, valid...), want: []string{"letters, digits"}},
		"a semicolon":                           {args: append([]string{"--url", "https://kuota.example.com/x;y"}, valid...), want: []string{"letters, digits"}},
		"a space":                               {args: append([]string{"--url", "https://kuota.example.com/x y"}, valid...), want: []string{"letters, digits"}},
		"other letters":                         {args: append([]string{"--url", "https://kuota.example.com/zugänge"}, valid...), want: []string{"letters, digits"}},
		"an unencrypted issuer":                 {args: append(valid, "--oidc-issuer", "http://login.example.com"), want: []string{"use https"}},
		"no certificate":                        {args: append(valid, "--tls-cert-file", invalid, "--tls-key-file", invalid, "--oidc-ca-file", invalid), want: []string{"tls-cert-file", "oidc-ca-file"}},
		"reserved prefixes":                     {args: append(valid, "--oidc-groups-prefix", "system:", "--oidc-username-prefix", "system:x"), want: []string{"oidc-groups-prefix", "oidc-username-prefix"}},
		"scopes without openid":                 {args: append(valid, "--oidc-scopes", "email"), want: []string{"openid"}},
		"invalid keys":                          {args: append(valid, "--session-keys-file", invalid), want: []string{"session-keys-file"}},
		"invalid accounts":                      {args: append(valid, "--writing-accounts", "ci/robot,robot,system:masters/x"), want: []string{`"robot"`, `"system:masters/x"`}},
		"an invalid proxy":                      {args: append(valid, "--trusted-proxies", "10.0.0.0/8,proxy"), want: []string{`"proxy"`}},
		"invalid claims":                        {args: append(valid, "--oidc-required-claims", "a"), want: []string{"claim=value"}},
		"a token without prometheus-url":        {args: []string{"--prometheus-token-file", keys}, want: []string{"prometheus-token-file is set"}},
		"an invalid prometheus-url":             {args: []string{"--prometheus-url", "prometheus:9090"}, want: []string{"http://host:port"}},
		"a dashboard of another scheme":         {args: []string{"--dashboard-url", "javascript:alert(1)"}, want: []string{"dashboard-url", "write it as https://host/path?query"}},
		"an external log system in the host":    {args: []string{"--log-url", "https://{task}.example.com/"}, want: []string{"log-url", "in its host"}},
		"an unencrypted token":                  {args: []string{"--prometheus-url", "http://prometheus.example.com", "--prometheus-token-file", keys}, want: []string{"use https"}},
		"invalid settings of Prometheus":        {args: []string{"--prometheus-url", "https://prometheus.example.com", "--prometheus-token-file", "/none", "--prometheus-match", "{", "--prometheus-node-label", "a-b"}, want: []string{"prometheus-token-file", "prometheus-match", "prometheus-node-label"}},
		"invalid authorities":                   {args: []string{"--prometheus-url", "https://prometheus.example.com", "--prometheus-ca-file", invalid}, want: []string{"prometheus-ca-file"}},
		"audit events without TLS":              {args: []string{"--audit-webhook-address", ":8444", "--audit-webhook-token-file", invalid}, want: []string{"without TLS API servers send no token", "at least 20 characters"}},
		"audit events for nothing":              {args: []string{"--audit-webhook-address", "8444", "--history", "none", "--history-persons-keep", "1h"}, want: []string{"host:port", "audit-webhook-token-file", "history-persons-keep"}},
		"a token without a receiver":            {args: []string{"--audit-webhook-token-file", invalid}, want: []string{"set audit-webhook-address, too"}},
		"invalid idle limits":                   {args: []string{"--idle-after", "1s", "--idle-below", "50"}, want: []string{"idle-after", "idle-below"}},
		"too short sessions":                    {args: append(valid, "--session-idle", "1s"), want: []string{"at least 1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseConfig(tc.args, func(name string) string { return tc.env[name] })
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q: %v", want, err)
				}
			}
		})
	}
}

// kuota alone prints help, that fits on a screen. The console starts with serve, and until the next
// version without it.
func TestCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args, env []string
		want      []string // the command that runs; nil for none
	}{
		"nothing":                     {env: []string{"KUOTA_SERVER=https://x", "KUOTA_TOKEN=x", "KUOTA_LISTEN="}},
		"help":                        {args: []string{"--help"}, env: []string{"KUOTA_LISTEN=:1"}, want: []string{"--help"}},
		"a flag of users":             {args: []string{"--server", "https://x", "tasks"}, want: []string{"--server", "https://x", "tasks"}},
		"a flag of the console":       {args: []string{"--listen=:1"}, want: []string{"serve", "--listen=:1"}},
		"with one hyphen":             {args: []string{"-cluster-name", "x"}, want: []string{"serve", "-cluster-name", "x"}},
		"a variable of the console":   {env: []string{"KUOTA_NAME_PREFIX=a-"}, want: []string{"serve"}},
		"a command beside a variable": {args: []string{"version"}, env: []string{"KUOTA_LISTEN=:1"}, want: []string{"version"}},
	} {
		t.Run(name, func(t *testing.T) {
			var messages strings.Builder
			got := withCommand(tc.args, tc.env, &messages)
			started := len(got) > len(tc.args)
			if !slices.Equal(got, tc.want) || started != strings.Contains(messages.String(), "kuota serve") {
				t.Errorf("got %q and the message %q, want %q", got, messages.String(), tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		args []string
		want []string
		not  string
	}{
		"alone":   {want: []string{"Tasks:", "Run a console:", "kuota [command] --help"}, not: "--listen"},
		"--help":  {args: []string{"--help"}, want: []string{"Tasks:", "serve"}, not: "--listen"},
		"serve":   {args: []string{"serve", "--help"}, want: []string{"-history-keep duration", "(default 9600h0m0s)"}, not: "kube-qps"},
		"another": {args: []string{"adopt", "--help"}, want: []string{"usage: kuota adopt"}, not: "--listen"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			root := newRoot(streams{in: strings.NewReader(""), out: &out, messages: &out})
			root.SetArgs(tc.args)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) || strings.Contains(out.String(), tc.not) {
					t.Errorf("got %q, want %q and not %q", out.String(), want, tc.not)
				}
			}
			if lines := strings.Count(out.String(), "\n"); lines >= 60 && name != "serve" {
				t.Errorf("got %d lines, want fewer than 60", lines)
			}
		})
	}
}
