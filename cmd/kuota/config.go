package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/urls"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// config is the configuration of the console. Each flag has an environment
// variable: KUOTA_ and the flag's name in upper case.
type config struct {
	listen           string
	url              string
	tlsCert          string
	tlsKey           string
	trustedProxies   string
	metrics          string
	teamMetrics      bool
	history          string
	historyKeep      time.Duration
	personsKeep      time.Duration
	historyManifests bool
	activityDir      string
	audit            auditConfig

	kubeconfig     string
	namespace      string
	clusterName    string
	helmRelease    string
	naming         desired.Naming
	kueue          reconcile.KueueInstall
	jobControllers string
	// writingAccounts are the service accounts whose tokens write.
	writingAccounts string
	serviceAccount  string
	takeOver        bool
	leaderElection  bool
	retired         []string // flags that were set and have no effect any more

	simulationMemory string // a quantity
	simulationBytes  int64  // its value

	oidc     oidcConfig
	sessions sessionConfig
	hardware hardwareConfig

	dashboardURL string
	dashboard    urls.LinkTemplate // its value
	logURL       string
	externalLogs urls.LinkTemplate // its value

	logLevel slog.Level
}

// auditConfig is the configuration of the receiver of audit events.
type auditConfig struct {
	listen    string // 0 for none
	tokenFile string
	cert, key string // files
}

// oidcConfig is the configuration of sign-in. Its flags have the names of the
// API server's.
type oidcConfig struct {
	commandLine      string
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

// sessionConfig is the configuration of sessions.
type sessionConfig struct {
	keysFile string
	idle     time.Duration
	absolute time.Duration
}

// register registers a flag for each value.
func (c *config) register(flags *flag.FlagSet, level *string) {
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address to listen on, host:port; other than loopback only with an issuer")
	flags.StringVar(&c.url, "url", "", "external URL of the console, such as https://kuota.example.com, or with a base path, such as https://apps.example.com/kuota, which proxies must not remove; required with an issuer, unless it listens on loopback")
	flags.StringVar(&c.tlsCert, "tls-cert-file", "", "TLS certificate file (PEM, with its chain); reloaded when it changes")
	flags.StringVar(&c.tlsKey, "tls-key-file", "", "TLS key file (PEM)")
	flags.StringVar(&c.trustedProxies, "trusted-proxies", "", "comma-separated addresses or networks (CIDR) whose X-Forwarded-For is trusted")
	flags.StringVar(&c.metrics, "metrics-address", "0", "address of /metrics for Prometheus, host:port, without authentication; 0 disables it")
	flags.BoolVar(&c.teamMetrics, "team-metrics", false, "serve metrics of each team and department too, with their names: quota, usage and waiting tasks by pool; everyone who can read /metrics then sees all teams")
	flags.StringVar(&c.history, "history", "kuota-history.db", "history database: the path of a SQLite file, or postgres://… ; none keeps history in memory only")
	flags.DurationVar(&c.historyKeep, "history-keep", 400*24*time.Hour, "retention of history")
	flags.DurationVar(&c.personsKeep, "history-persons-keep", 0, "how long history names persons; afterwards each has a pseudonym, the same everywhere; 0 for as long as history")
	flags.BoolVar(&c.historyManifests, "history-manifests", true, "keep the manifests of tasks in history for 90 days, so that they can be submitted again after they were deleted; manifests can contain values of environment variables")
	flags.StringVar(&c.activityDir, "activity-dir", "", "folder for activity that the history database does not have yet; default beside a SQLite database; without one, activity is in memory while PostgreSQL does not answer")
	flags.StringVar(&c.audit.listen, "audit-webhook-address", "0", "address that API servers send audit events to over TLS, host:port, for who deletes and changes tasks without the console; 0 disables it")
	flags.StringVar(&c.audit.tokenFile, "audit-webhook-token-file", "", "file with the bearer token that API servers send; read for each request")
	flags.StringVar(&c.audit.cert, "audit-webhook-cert-file", "", "TLS certificate file (PEM, with its chain) for API servers; default that of tls-cert-file; reloaded when it changes")
	flags.StringVar(&c.audit.key, "audit-webhook-key-file", "", "TLS key file (PEM) for API servers")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default KUBECONFIG, then the pod's service account")
	flags.StringVar(&c.namespace, "namespace", "kuota-system", "namespace of the console, where it stores sessions and versions")
	flags.StringVar(&c.serviceAccount, "service-account", "kuota", "service account of the console in its namespace, which creates the Jobs of elastic tasks in the namespaces of teams")
	flags.StringVar(&c.helmRelease, "helm-release", "", "Helm release of the console, for the commands on the settings page; the chart sets it")
	flags.StringVar(&c.clusterName, "cluster-name", "local", "name of the cluster on pages")
	flags.StringVar(&c.naming.Prefix, "name-prefix", desired.DefaultNaming.Prefix, "prefix of the names of team namespaces and queues")
	flags.StringVar(&c.naming.Cohort, "cohort", desired.DefaultNaming.Cohort, "cohort of all queues")
	flags.StringVar(&c.naming.InstanceTypeLabel, "instance-type-label", desired.DefaultNaming.InstanceTypeLabel, "node label with the instance type")
	flags.StringVar(&c.jobControllers, "job-controllers", strings.Join(enforcement.DefaultJobControllers, ","), "comma-separated users that create pods and jobs of admitted jobs; all other users need a queue")
	flags.StringVar(&c.writingAccounts, "writing-accounts", "", "comma-separated service accounts, as namespace/name, whose tokens also write by the API, with their own permissions; the console needs the permission to act as each")
	flags.BoolVar(&c.kueue.Manage, "manage-kueue", reconcile.DefaultKueueInstall.Manage, "write fair sharing and gang scheduling of the cluster policy to Kueue's configuration and restart Kueue; false shows the changes instead")
	flags.BoolVar(&c.takeOver, "take-over", false, "write even if HyperPod task governance manages the cluster; without it, the console is read-only there")
	flags.BoolVar(&c.leaderElection, "leader-election", true, "elect one replica that runs the controllers, the loop guard and the recorder, by a Lease in the console's namespace; false only if no other console runs in the cluster")
	flags.StringVar(&c.kueue.Namespace, "kueue-namespace", reconcile.DefaultKueueInstall.Namespace, "namespace of Kueue")
	flags.StringVar(&c.kueue.ConfigMap, "kueue-configmap", reconcile.DefaultKueueInstall.ConfigMap, "ConfigMap with Kueue's configuration")
	flags.StringVar(&c.kueue.Deployment, "kueue-deployment", reconcile.DefaultKueueInstall.Deployment, "Deployment that runs Kueue")
	flags.StringVar(&c.simulationMemory, "simulation-memory", "1Gi", "memory for simulations with Kueue's scheduler, in a child process; 0 disables them, and pages say \"Not simulated\" beside what would start a task")
	flags.StringVar(&c.oidc.issuer, "oidc-issuer", "", "OpenID Connect issuer for sign-in; without one, everyone who can reach the console acts with its permissions, and it listens on loopback only")
	flags.StringVar(&c.oidc.caFile, "oidc-ca-file", "", "CA file (PEM) for the issuer's certificate; default the system's CAs")
	flags.StringVar(&c.oidc.clientID, "oidc-client-id", "", "client ID at the issuer")
	flags.StringVar(&c.oidc.clientSecretFile, "oidc-client-secret-file", "", "file with the client secret; empty for a public client")
	flags.StringVar(&c.oidc.commandLine, "oidc-command-line-client-id", "", "client ID of kuota login at the issuer, a public client with the device flow; empty for none")
	flags.StringVar(&c.oidc.scopes, "oidc-scopes", "", "comma-separated scopes; default those of openid, profile, email, groups and offline_access that the issuer supports")
	flags.StringVar(&c.oidc.usernameClaim, "oidc-username-claim", "sub", "claim with the username, as configured for the API server")
	flags.StringVar(&c.oidc.usernamePrefix, "oidc-username-prefix", "", "prefix of the username, as configured for the API server: empty means issuer and # unless the claim is email, - means none")
	flags.StringVar(&c.oidc.groupsClaim, "oidc-groups-claim", "groups", "claim with the groups")
	flags.StringVar(&c.oidc.groupsPrefix, "oidc-groups-prefix", "", "prefix of each group")
	flags.StringVar(&c.oidc.requiredClaims, "oidc-required-claims", "", "comma-separated claims that a user must have, claim=value")
	flags.StringVar(&c.sessions.keysFile, "session-keys-file", "", "file with keys that encrypt sessions, one per line: 32 random bytes in base64; the first encrypts, all decrypt; reloaded when it changes")
	flags.DurationVar(&c.sessions.idle, "session-idle", 2*time.Hour, "session timeout since the last request")
	flags.DurationVar(&c.sessions.absolute, "session-max", 12*time.Hour, "session timeout since sign-in")
	c.hardware.register(flags)
	flags.StringVar(&c.dashboardURL, "dashboard-url", "", "address of an external dashboard, such as Grafana, to which pages of tasks, teams and nodes link, with the placeholders {namespace}, {team}, {kind}, {task}, {pod}, {node}, {from} and {to}; other braces are written as %7B and %7D")
	flags.StringVar(&c.logURL, "log-url", "", "address of an external log system, to which pages of tasks link, with the placeholders {namespace}, {kind}, {task}, {pod}, {container}, {from} and {to}; other braces are written as %7B and %7D")
	flags.StringVar(level, "log-level", *level, "debug, info, warn or error")
	for _, name := range []string{"kube-burst", "kube-qps", "prometheus-timeout"} { // until the next version
		flags.Func(name, "", func(string) error {
			c.retired = append(c.retired, name)
			return nil
		})
	}
}

// parseConfig reads the flags, and environment variables for flags that are not
// set. Its error lists all invalid values.
func parseConfig(args []string, env func(string) string) (config, error) {
	var c config
	var level string
	flags := serveFlags(&c, &level)
	set, invalid, err := readFlags(flags, args, env)
	if err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		invalid = append(invalid, fmt.Errorf("unexpected argument %q; kuota serve --help lists the flags", flags.Arg(0)))
	}
	if c.oidc.issuer == "" {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if strings.HasPrefix(name, "oidc-") || name == "session-keys-file" {
				invalid = append(invalid, fmt.Errorf("%s is set without oidc-issuer: without an issuer nobody signs in, and everyone who can reach the console acts with its permissions", name))
			}
		}
	}
	c.naming.Console = "system:serviceaccount:" + c.namespace + ":" + c.serviceAccount
	invalid = slices.Concat(invalid, c.check(level), c.checkWeb(), c.checkAudit(), c.checkSignIn(), c.hardware.check(set))
	return c, errors.Join(invalid...)
}

// writers returns the user names of the service accounts whose tokens write.
func (c *config) writers() (names []string) {
	for _, account := range list(c.writingAccounts) {
		names = append(names, "system:serviceaccount:"+strings.Replace(account, "/", ":", 1))
	}
	return names
}

// serveFlags returns the flags of kuota serve, which set c and level.
func serveFlags(c *config, level *string) *flag.FlagSet {
	flags := flag.NewFlagSet("kuota serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	*level = "info"
	c.register(flags, level)
	return flags
}

// serveHelp returns the help of kuota serve.
func serveHelp() string {
	return "usage: kuota serve [flags]\n\nRuns the console: its pages, its API and its controllers. Each flag has an environment\nvariable, such as KUOTA_LISTEN for --listen.\n\n" + flagHelp(serveFlags(new(config), new(string)))
}

// readFlags parses args, and sets flags that args do not contain from their
// environment variables. It returns the names of the flags that are set, and an
// error for each invalid value.
func readFlags(flags *flag.FlagSet, args []string, env func(string) string) (set map[string]bool, invalid []error, err error) {
	flags.VisitAll(func(f *flag.Flag) { f.Value = lenient{f.Value, f.Name, &invalid} })
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	set = map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	flags.VisitAll(func(f *flag.Flag) {
		variable := variableOf(f.Name)
		if value := env(variable); value != "" && !set[f.Name] {
			set[f.Name] = true
			if err := f.Value.(lenient).Value.Set(value); err != nil {
				invalid = append(invalid, fmt.Errorf("%s=%q: %w", variable, value, err))
			}
		}
	})
	return set, invalid, nil
}

// variableOf returns the name of a flag's environment variable.
func variableOf(flag string) string {
	return "KUOTA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagHelp returns the description of all flags but those that are retired.
func flagHelp(flags *flag.FlagSet) string {
	var help strings.Builder
	shown := flag.NewFlagSet(flags.Name(), flag.ContinueOnError)
	shown.SetOutput(&help)
	flags.VisitAll(func(f *flag.Flag) {
		if f.Usage == "" {
			return
		}
		value := f.Value
		if wrapped, ok := value.(lenient); ok { // whose type and default are not printed
			value = wrapped.Value
		}
		shown.Var(value, f.Name, f.Usage)
		shown.Lookup(f.Name).DefValue = f.DefValue
	})
	shown.PrintDefaults()
	return help.String()
}

// lenient records the error of a value, so that parsing continues and reports
// all errors together.
type lenient struct {
	flag.Value
	name    string
	invalid *[]error
}

// Set implements flag.Value.
func (l lenient) Set(text string) error {
	if err := l.Value.Set(text); err != nil {
		*l.invalid = append(*l.invalid, fmt.Errorf("%s %q: %w", l.name, text, err))
	}
	return nil
}

// IsBoolFlag lets --flag without a value mean true, as for boolean flags of
// package flag.
func (l lenient) IsBoolFlag() bool {
	b, ok := l.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// minSimulationMemory is what a child process needs for a small cluster.
const minSimulationMemory = 256 << 20

// check returns what is invalid about settings of neither the web server nor
// sign-in nor hardware.
func (c *config) check(level string) (invalid []error) {
	report := func(format string, args ...any) { invalid = append(invalid, fmt.Errorf(format, args...)) }
	if err := c.logLevel.UnmarshalText([]byte(level)); err != nil {
		report("log-level %q: use debug, info, warn or error", level)
	}
	if problems := validation.IsDNS1123Label(c.naming.Prefix + "a"); len(problems) > 0 || len(c.naming.Prefix) > 23 {
		report("name-prefix %q: use at most 23 lower-case letters, digits and hyphens, starting with a letter or digit, so that a team name of 40 characters fits", c.naming.Prefix)
	}
	if problems := validation.IsDNS1123Subdomain(c.naming.Cohort); len(problems) > 0 {
		report("cohort %q: %s", c.naming.Cohort, problems[0])
	}
	if problems := validation.IsQualifiedName(c.naming.InstanceTypeLabel); len(problems) > 0 {
		report("instance-type-label %q: %s", c.naming.InstanceTypeLabel, problems[0])
	}
	if problems := validation.IsDNS1123Label(c.namespace); len(problems) > 0 {
		report("namespace %q: %s", c.namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(c.serviceAccount); len(problems) > 0 {
		report("service-account %q: %s", c.serviceAccount, problems[0])
	}
	for _, account := range list(c.writingAccounts) {
		namespace, name, _ := strings.Cut(account, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			report("writing-accounts %q: use namespace/name of a service account", account)
		} else if namespace == c.namespace && name == c.serviceAccount {
			report("writing-accounts %q: is the console's own account", account)
		}
	}
	if c.historyKeep < 24*time.Hour {
		report("history-keep %s: use at least 24h", c.historyKeep)
	}
	if c.personsKeep != 0 && c.personsKeep < 24*time.Hour {
		report("history-persons-keep %s: use at least 24h, or 0", c.personsKeep)
	}
	memory, err := resource.ParseQuantity(c.simulationMemory)
	if c.simulationBytes = int64(resources.AmountFromQuantity("memory", memory)); err != nil || memory.Sign() < 0 || c.simulationBytes != 0 && c.simulationBytes < minSimulationMemory {
		report("simulation-memory %q: use at least 256Mi, or 0", c.simulationMemory)
	}
	if c.dashboard, err = urls.ParseLinkTemplate(c.dashboardURL); err != nil {
		report("dashboard-url %q: %w", c.dashboardURL, err)
	}
	if c.externalLogs, err = urls.ParseLinkTemplate(c.logURL); err != nil {
		report("log-url %q: %w", c.logURL, err)
	}
	return invalid
}

// activityFile returns the file of activity that the database does not have yet; empty for
// none.
func (c config) activityFile() string {
	switch {
	case c.activityDir != "":
		return filepath.Join(c.activityDir, "activity.jsonl")
	case history.IsServer(c.history):
		return ""
	}
	return c.history + "-activity.jsonl"
}
