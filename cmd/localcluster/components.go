package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	_ "embed"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

func etcdComponent(l layout, bin string, p ports) *component {
	client, peer := httpsURL(p.etcd), httpURL(p.etcdPeer)
	return &component{
		name: etcdName, path: filepath.Join(bin, etcdName), args: []string{
			"--name=default",
			"--data-dir=" + l.data("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--cert-file=" + l.pki("etcd.crt"),
			"--key-file=" + l.pki("etcd.key"),
			"--client-cert-auth",
			"--trusted-ca-file=" + l.pki("etcd-ca.crt"),
			"--unsafe-no-fsync",                // the data does not outlive the instance
			"--quota-backend-bytes=8589934592", // large benchmarks exceed the default of 2 GiB
			"--log-level=warn",
		},
		ready: portOpen(p.etcd),
		grace: 700 * time.Millisecond,
		ports: []namedPort{{"client", p.etcd}, {"peer", p.etcdPeer}},
	}
}

func apiServerComponent(l layout, bin string, p ports) *component {
	return &component{
		name: apiServerName, path: filepath.Join(bin, apiServerName), args: []string{
			"--etcd-servers=" + httpsURL(p.etcd),
			"--etcd-cafile=" + l.pki("etcd-ca.crt"),
			"--etcd-certfile=" + l.pki("etcd-client.crt"),
			"--etcd-keyfile=" + l.pki("etcd-client.key"),
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(p.api),
			// Without these two the server looks for a network interface, which
			// may not exist. No other machine needs the address.
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=10.96.0.0/16",
			"--tls-cert-file=" + l.pki("apiserver.crt"),
			"--tls-private-key-file=" + l.pki("apiserver.key"),
			"--client-ca-file=" + l.pki("ca.crt"),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + l.pki("sa.key"),
			"--service-account-signing-key-file=" + l.pki("sa.key"),
			// For aggregated APIs, such as Kueue's visibility API. Not with
			// --enable-aggregator-routing, which needs endpoints: the Services
			// here have none.
			"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
			"--audit-policy-file=" + l.auditPolicy(),
			"--audit-log-path=" + l.log("audit"),
			"--audit-log-maxsize=50", // MiB
			"--audit-log-maxbackup=1",
		},
		env:   []string{"GOGC=" + cmp.Or(os.Getenv("GOGC"), apiServerGOGC)},
		ready: httpOK(httpsURL(p.api) + "/readyz"),
		grace: time.Second, // it waits for open watches, which do not end by themselves
		ports: []namedPort{{"https", p.api}},
	}
}

// apiServerGOGC saves a tenth of the CPU time of a start: with the default the API
// server collects its small heap very often.
const apiServerGOGC = "200"

// controllerComponent returns the controller manager or the scheduler, which
// share most flags.
func controllerComponent(l layout, bin, name string, port int, args ...string) *component {
	config := l.componentConfig(name)
	return &component{
		name: name, path: filepath.Join(bin, name), args: append([]string{
			"--kubeconfig=" + config,
			"--authentication-kubeconfig=" + config,
			"--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--tls-cert-file=" + l.pki("component.crt"),
			"--tls-private-key-file=" + l.pki("component.key"),
			"--leader-elect=false",
			"--kube-api-qps=300",
			"--kube-api-burst=600",
		}, args...),
		ready: httpOK(httpsURL(port) + "/healthz"),
		grace: 1200 * time.Millisecond,
		ports: []namedPort{{"https", port}},
	}
}

func controllerManagerComponent(l layout, bin string, p ports) *component {
	return controllerComponent(l, bin, controllerManagerName, p.controllerManager,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+l.pki("sa.key"),
		"--root-ca-file="+l.pki("ca.crt"),
		"--cluster-signing-cert-file="+l.pki("ca.crt"),
		"--cluster-signing-key-file="+l.pki("ca.key"),
		// A heartbeat comes late on a machine whose cores are all busy. The
		// default of 50 s would then mark nodes as lost in the middle of a test.
		"--node-monitor-grace-period=2m",
	)
}

func schedulerComponent(l layout, bin string, p ports) *component {
	return controllerComponent(l, bin, schedulerName, p.scheduler)
}

// kwokComponent simulates the kubelets of all nodes; beside a real node, of those
// that are annotated.
func kwokComponent(l layout, bin string, p ports, realNode bool) (*component, error) {
	stages, err := filepath.Glob(filepath.Join(kwokStages(bin), "*.yaml"))
	if err != nil || len(stages) == 0 {
		return nil, fmt.Errorf("no KWOK stages in %s; run: localcluster build --bin %s", kwokStages(bin), bin)
	}
	args := []string{
		"--kubeconfig=" + l.componentConfig(kwokName),
		"--server-address=" + loopback(p.kwok),
		"--node-lease-duration-seconds=120", // each node renews its own four times in that time
	}
	if realNode {
		args = append(args, "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector="+simulatedNode+"="+simulatedValue)
	} else {
		args = append(args, "--manage-all-nodes=true")
	}
	for _, stage := range slices.Sorted(slices.Values(stages)) {
		args = append(args, "--config="+stage)
	}
	return &component{
		name: kwokName, path: filepath.Join(bin, kwokName), args: args,
		ready: httpOK(httpURL(p.kwok) + "/healthz"),
		grace: 1200 * time.Millisecond,
		ports: []namedPort{{"http", p.kwok}},
	}, nil
}

// defaultTokenLife is short, as providers recommend: the console then reads the
// user and the groups again.
const defaultTokenLife = 5 * time.Minute

// providerComponent is this program with its hidden command provider, so that
// it can be stopped and started alone.
func providerComponent(l layout, p ports, life time.Duration) (*component, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return &component{
		name: providerName, path: self, args: []string{
			"provider",
			"--listen=" + loopback(p.provider),
			"--users=" + l.signin("users.yaml"),
			"--dir=" + l.path("signin"),
			"--token-life=" + life.String(),
		},
		ready: httpOK(httpURL(p.provider) + "/.well-known/openid-configuration"),
		grace: 2 * time.Second,
		ports: []namedPort{{"http", p.provider}},
	}, nil
}

// consoleNamespace is the console's namespace, which --rbac creates.
const consoleNamespace = "kuota-system"

func consoleComponent(l layout, binary string, port int, issuer string) *component {
	return &component{
		name: consoleName, path: absolute(binary), args: []string{"serve"}, env: consoleEnv(l, port, issuer),
		ready: httpOK(httpURL(port) + "/readyz"),
		grace: 2 * time.Second,
		ports: []namedPort{{"http", port}},
	}
}

// consoleEnv returns the console's configuration. Without an issuer no user
// signs in.
func consoleEnv(l layout, port int, issuer string) []string {
	env := []string{
		"KUBECONFIG=" + l.componentConfig(consoleName),
		"KUOTA_LISTEN=" + loopback(port),
		"KUOTA_URL=" + httpURL(port),
		"KUOTA_NAMESPACE=" + consoleNamespace,
		"KUOTA_HISTORY=" + l.data("history.db"),
	}
	if issuer == "" {
		return env
	}
	return append(env,
		"KUOTA_OIDC_ISSUER="+issuer,
		"KUOTA_OIDC_CLIENT_ID="+clientID,
		"KUOTA_OIDC_COMMAND_LINE_CLIENT_ID="+provider.CommandLineID,
		"KUOTA_OIDC_CLIENT_SECRET_FILE="+l.signin("client-secret"),
		"KUOTA_SESSION_KEYS_FILE="+l.signin("session-keys"),
		"KUOTA_OIDC_USERNAME_CLAIM=email",
		"KUOTA_OIDC_USERNAME_PREFIX=-", // none: the user name is the email address
		"KUOTA_OIDC_GROUPS_CLAIM=groups",
	)
}
