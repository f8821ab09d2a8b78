package main

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strconv"
	"time"
)

// Names of components, as the commands and the logs know them.
const (
	etcdStore         = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	schedulerName     = "kube-scheduler"
	kueueName         = "kueue"
	kwokName          = "kwok"
	consoleName       = "kuota"
	providerName      = "provider"
)

// healthClient asks components on loopback whether they are ready. It carries
// no credentials and reads no secrets, so it need not know their certificates.
var healthClient = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	DisableKeepAlives: true,
}}

func etcdComponent(l layout, bin string, ports map[string]int) *component {
	client, peer := "https://"+loopback(ports["etcd"]), "http://"+loopback(ports["etcd-peer"])
	return &component{
		name: etcdStore,
		spec: spec{path: filepath.Join(bin, etcdStore), args: []string{
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
			"--unsafe-no-fsync",                // the data does not outlive the run
			"--quota-backend-bytes=8589934592", // the default of 2 GiB ends large benchmarks
			"--log-level=warn",
		}},
		ready: portOpen(ports["etcd"]),
		grace: 3 * time.Second,
		ports: []namedPort{{"client", ports["etcd"]}, {"peer", ports["etcd-peer"]}},
	}
}

func apiServerComponent(l layout, bin string, ports map[string]int) *component {
	return &component{
		name: apiServer,
		spec: spec{path: filepath.Join(bin, apiServer), args: append(auditFlags(l),
			"--etcd-servers=https://"+loopback(ports["etcd"]),
			"--etcd-cafile="+l.pki("etcd-ca.crt"),
			"--etcd-certfile="+l.pki("etcd-client.crt"),
			"--etcd-keyfile="+l.pki("etcd-client.key"),
			"--bind-address=127.0.0.1",
			"--secure-port="+strconv.Itoa(ports["api"]),
			// Nobody outside this machine needs the address, and without these
			// two the server looks for a network interface that may not exist.
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=10.96.0.0/16",
			"--tls-cert-file="+l.pki("apiserver.crt"),
			"--tls-private-key-file="+l.pki("apiserver.key"),
			"--client-ca-file="+l.pki("ca.crt"),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file="+l.pki("sa.pub"),
			"--service-account-signing-key-file="+l.pki("sa.key"),
			// For aggregated APIs (Kueue's visibility). Never with
			// --enable-aggregator-routing: it looks for endpoints, and the
			// Services here have none.
			"--requestheader-client-ca-file="+l.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file="+l.pki("front-proxy-client.crt"),
			"--proxy-client-key-file="+l.pki("front-proxy-client.key"),
		)},
		ready: httpOK(healthClient, "https://"+loopback(ports["api"])+"/readyz"),
		grace: time.Second, // it waits for open watches, which never end by themselves
		ports: []namedPort{{"https", ports["api"]}},
	}
}

// secureFlags are common to the controller manager and the scheduler.
func secureFlags(l layout, name string, port int) []string {
	config := l.componentConfig(name)
	return []string{
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
	}
}

func controllerManagerComponent(l layout, bin string, ports map[string]int) *component {
	return &component{
		name: controllerManager,
		spec: spec{path: filepath.Join(bin, controllerManager), args: append(secureFlags(l, controllerManager, ports["controller-manager"]),
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+l.pki("sa.key"),
			"--root-ca-file="+l.pki("ca.crt"),
			"--cluster-signing-cert-file="+l.pki("ca.crt"),
			"--cluster-signing-key-file="+l.pki("ca.key"),
			// On a machine whose cores are all busy a heartbeat comes late; the
			// default of 50 s would then mark nodes as lost in the middle of a test.
			"--node-monitor-grace-period=2m",
		)},
		ready: httpOK(healthClient, "https://"+loopback(ports["controller-manager"])+"/healthz"),
		grace: 3 * time.Second,
		ports: []namedPort{{"https", ports["controller-manager"]}},
	}
}

func schedulerComponent(l layout, bin string, ports map[string]int) *component {
	return &component{
		name:  schedulerName,
		spec:  spec{path: filepath.Join(bin, schedulerName), args: secureFlags(l, schedulerName, ports["scheduler"])},
		ready: httpOK(healthClient, "https://"+loopback(ports["scheduler"])+"/healthz"),
		grace: 3 * time.Second,
		ports: []namedPort{{"https", ports["scheduler"]}},
	}
}
