package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/enforcement"
	"kuota.dev/kuota/governance/reconcile"

	"k8s.io/apimachinery/pkg/util/validation"
)

// config is what the console can be told. Each flag has an environment
// variable behind it: KUOTA_ and its name in capitals.
type config struct {
	listen         string
	url            string
	tlsCert        string
	tlsKey         string
	trustedProxies string
	metrics        string
	history        string
	historyKeep    time.Duration

	kubeconfig     string
	namespace      string
	clusterName    string
	naming         desired.Naming
	kueue          reconcile.KueueInstall
	jobControllers string
	takeOver       bool
	qps            float64
	burst          int

	oidc     oidcConfig
	sessions sessionConfig
	hardware hardwareConfig

	logLevel slog.Level
}

// oidcConfig says who signs people in. The names are those of the API
// server's flags.
type oidcConfig struct {
	issuer           string
	caFile           string
	clientID         string
	clientSecretFile string
	scopes           string
	usernameClaim    string
	usernamePrefix   string
	groupsClaim      string
	groupsPrefix     string
	requiredClaims   string
}

// sessionConfig says how long people stay signed in.
type sessionConfig struct {
	keysFile string
	idle     time.Duration
	absolute time.Duration
}

// register gives every value its flag.
func (c *config) register(flags *flag.FlagSet, level *string) {
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address to answer on, host:port; beyond this machine only with an issuer")
	flags.StringVar(&c.url, "url", "", "how browsers reach the console, such as https://kuota.example.com; needed with an issuer, unless it listens on this machine only")
	flags.StringVar(&c.tlsCert, "tls-cert-file", "", "certificate (PEM, with its chain); read again when it changes")
	flags.StringVar(&c.tlsKey, "tls-key-file", "", "key of the certificate (PEM)")
	flags.StringVar(&c.trustedProxies, "trusted-proxies", "", "addresses or networks (CIDR), separated by commas, whose X-Forwarded-For is believed")
	flags.StringVar(&c.metrics, "metrics-address", "0", "address that /metrics is served on for Prometheus, host:port, to whoever reaches it; 0 serves none")
	flags.StringVar(&c.history, "history", "kuota-history.db", "database that keeps what the cluster forgets: the path of a SQLite file, or postgres://… ; none keeps nothing longer than the console runs")
	flags.DurationVar(&c.historyKeep, "history-keep", 400*24*time.Hour, "how long history is kept")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty takes KUBECONFIG, then the pod's service account")
	flags.StringVar(&c.namespace, "namespace", "kuota-system", "the console's own namespace, where it keeps who is signed in, and versions")
	flags.StringVar(&c.clusterName, "cluster-name", "local", "what pages call the cluster")
	flags.StringVar(&c.naming.Prefix, "name-prefix", desired.DefaultNaming.Prefix, "what stands before the team in the names of its namespace and queues")
	flags.StringVar(&c.naming.Cohort, "cohort", desired.DefaultNaming.Cohort, "cohort that all queues lend to and borrow from")
	flags.StringVar(&c.naming.InstanceTypeLabel, "instance-type-label", desired.DefaultNaming.InstanceTypeLabel, "node label that names an instance's type")
	flags.StringVar(&c.jobControllers, "job-controllers", strings.Join(enforcement.Controllers, ","), "users that make the pods and jobs of admitted jobs, separated by commas; everybody else needs a queue")
	flags.BoolVar(&c.kueue.Manage, "manage-kueue", reconcile.DefaultKueueInstall.Manage, "keep fair sharing and gang scheduling in Kueue's configuration as the cluster policy says, and restart Kueue for it; false shows what differs instead")
	flags.BoolVar(&c.takeOver, "take-over", false, "write even where HyperPod's own task governance runs the cluster; without it, the console only reads there")
	flags.StringVar(&c.kueue.Namespace, "kueue-namespace", reconcile.DefaultKueueInstall.Namespace, "where Kueue runs")
	flags.StringVar(&c.kueue.ConfigMap, "kueue-configmap", reconcile.DefaultKueueInstall.ConfigMap, "ConfigMap with Kueue's configuration")
	flags.StringVar(&c.kueue.Deployment, "kueue-deployment", reconcile.DefaultKueueInstall.Deployment, "Deployment that runs Kueue")
	flags.Float64Var(&c.qps, "kube-qps", 200, "requests a second to the API server")
	flags.IntVar(&c.burst, "kube-burst", 400, "requests at once to the API server")
	flags.StringVar(&c.oidc.issuer, "oidc-issuer", "", "OpenID Connect issuer that people sign in with; without one, whoever reaches the console acts with its rights, and it listens on this machine only")
	flags.StringVar(&c.oidc.caFile, "oidc-ca-file", "", "authorities (PEM) that sign the issuer's certificate; empty takes the system's")
	flags.StringVar(&c.oidc.clientID, "oidc-client-id", "", "the console's client id at the issuer")
	flags.StringVar(&c.oidc.clientSecretFile, "oidc-client-secret-file", "", "file with the client secret; none for a public client")
	flags.StringVar(&c.oidc.scopes, "oidc-scopes", "", "scopes to ask for, separated by commas; empty takes openid, profile, email, groups and offline_access, as far as the issuer has them")
	flags.StringVar(&c.oidc.usernameClaim, "oidc-username-claim", "sub", "claim with the user's name, as for the API server")
	flags.StringVar(&c.oidc.usernamePrefix, "oidc-username-prefix", "", "what stands before the user's name, as for the API server: empty means issuer and # unless the claim is email, - means nothing")
	flags.StringVar(&c.oidc.groupsClaim, "oidc-groups-claim", "groups", "claim with the user's groups")
	flags.StringVar(&c.oidc.groupsPrefix, "oidc-groups-prefix", "", "what stands before each group")
	flags.StringVar(&c.oidc.requiredClaims, "oidc-required-claims", "", "claims that a user must have, claim=value, separated by commas")
	flags.StringVar(&c.sessions.keysFile, "session-keys-file", "", "file with keys that seal sessions, one a line: 32 random bytes in base64; the first seals, all open; read again when it changes")
	flags.DurationVar(&c.sessions.idle, "session-idle", 2*time.Hour, "how long after the last use people stay signed in")
	flags.DurationVar(&c.sessions.absolute, "session-max", 12*time.Hour, "how long after signing in people stay signed in")
	c.hardware.register(flags)
	flags.StringVar(level, "log-level", *level, "debug, info, warn or error")
}

// parseConfig reads flags, and the environment for those that are not given.
// Every wrong value is told at once.
func parseConfig(args []string, env func(string) string) (config, error) {
	var c config
	level := "info"
	flags := flag.NewFlagSet("kuota", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.register(flags, &level)
	var wrong []error
	flags.VisitAll(func(f *flag.Flag) { f.Value = lenient{f.Value, f.Name, &wrong} })
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			var help strings.Builder
			flags.SetOutput(&help)
			flags.PrintDefaults()
			return c, fmt.Errorf("usage: kuota [flags]\n%sor one of:\n%s", help.String(), commandHelp())
		}
		return c, err
	}
	if flags.NArg() > 0 {
		wrong = append(wrong, fmt.Errorf("%q: there is no such command here, only flags, and what follows it would be lost; a command stands first, one of:\n%s", flags.Arg(0), strings.TrimSuffix(commandHelp(), "\n")))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	flags.VisitAll(func(f *flag.Flag) {
		variable := "KUOTA_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := env(variable); value != "" && !given[f.Name] {
			given[f.Name] = true
			if err := f.Value.(lenient).Value.Set(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s=%q: %w", variable, value, err))
			}
		}
	})
	if c.oidc.issuer == "" {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if strings.HasPrefix(name, "oidc-") || name == "session-keys-file" {
				wrong = append(wrong, fmt.Errorf("%s is given and oidc-issuer is not: without an issuer nobody signs in, and whoever reaches the console acts with its rights", name))
			}
		}
	}
	wrong = append(wrong, c.check(level)...)
	wrong = append(wrong, c.checkWeb()...)
	wrong = append(wrong, c.checkSignIn()...)
	wrong = append(wrong, c.hardware.check(given)...)
	return c, errors.Join(wrong...)
}

// lenient keeps what is wrong with a value, so that parsing goes on and all is
// told at once.
type lenient struct {
	flag.Value
	name  string
	wrong *[]error
}

// Set implements flag.Value.
func (l lenient) Set(text string) error {
	if err := l.Value.Set(text); err != nil {
		*l.wrong = append(*l.wrong, fmt.Errorf("%s %q: %w", l.name, text, err))
	}
	return nil
}

// IsBoolFlag has --flag alone mean true, as flag does for values of its own.
func (l lenient) IsBoolFlag() bool {
	b, ok := l.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (c *config) check(level string) (wrong []error) {
	tell := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if err := c.logLevel.UnmarshalText([]byte(level)); err != nil {
		tell("log-level %q: use debug, info, warn or error", level)
	}
	if problems := validation.IsDNS1123Label(c.naming.Prefix + "a"); len(problems) > 0 || len(c.naming.Prefix) > 23 {
		tell("name-prefix %q: use at most 23 lower-case letters, digits and hyphens, starting with a letter or digit, so that a team of 40 fits behind it", c.naming.Prefix)
	}
	if problems := validation.IsDNS1123Subdomain(c.naming.Cohort); len(problems) > 0 {
		tell("cohort %q: %s", c.naming.Cohort, problems[0])
	}
	if problems := validation.IsQualifiedName(c.naming.InstanceTypeLabel); len(problems) > 0 {
		tell("instance-type-label %q: %s", c.naming.InstanceTypeLabel, problems[0])
	}
	if problems := validation.IsDNS1123Label(c.namespace); len(problems) > 0 {
		tell("namespace %q: %s", c.namespace, problems[0])
	}
	if c.historyKeep < 24*time.Hour {
		tell("history-keep %s: keep at least a day, 24h", c.historyKeep)
	}
	if c.qps <= 0 || c.burst <= 0 {
		tell("kube-qps %v and kube-burst %d: both must be above 0", c.qps, c.burst)
	}
	return wrong
}
