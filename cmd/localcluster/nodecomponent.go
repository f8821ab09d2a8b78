package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	_ "embed"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// simulatedNode is KWOK's annotation of the nodes that it manages beside a real
// node. It would answer for the pods of every other node too.
const (
	simulatedNode  = "kwok.x-k8s.io/node"
	simulatedValue = "fake"
)

//go:embed dns.yaml
var dnsPermissions []byte

func simulate(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[simulatedNode] = simulatedValue
	u.SetAnnotations(annotations)
}

func (l layout) node(name string) string { return l.data(filepath.Join("node", name)) }

// writeNodeCredentials writes the certificates of the kubelet and of the API
// server as its client, and the kubeconfigs of the node, which reaches the API
// server over its link.
func writeNodeCredentials(l layout, ca authority, network nodeNetwork, apiPort int) error {
	server := "https://" + network.host() + ":" + strconv.Itoa(apiPort)
	for file, c := range map[string]struct {
		user   string
		groups []string
		hosts  []string
	}{
		"kubelet":                  {"system:node:" + nodeName, []string{"system:nodes"}, []string{nodeName, network.node()}},
		"kube-proxy":               {"system:kube-proxy", nil, nil},
		"coredns":                  {"system:serviceaccount:kube-system:coredns", nil, nil},
		"apiserver-kubelet-client": {"kube-apiserver-kubelet-client", []string{"system:masters"}, nil},
	} {
		cert, key, err := ca.write(l.pki(file), c.user, c.groups, c.hosts...)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(kubeconfig(file, server, ca.certPEM(), cert, key), l.componentConfig(file)); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", file, err)
		}
	}
	return nil
}

// nodeServerFlags returns the flags of the API server for a real node.
func nodeServerFlags(l layout) []string {
	return []string{
		"--authorization-mode=Node",
		"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + l.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// startRealNode starts the real node, if there is one, and waits until pods can be
// placed on it.
func (s *supervisor) startRealNode(ctx context.Context, o upOptions, api apiClient, network nodeNetwork, p ports) error {
	if !o.realNode {
		return nil
	}
	s.bin = absolute(o.bin)
	for _, port := range []int{p.api, p.provider} {
		if err := network.forward(s.ctx, port); err != nil {
			return err
		}
	}
	if err := api.createServiceEndpoints(ctx, network, p.api); err != nil {
		return err
	}
	permissions, err := parseManifest(dnsPermissions)
	if err != nil {
		return err
	}
	if err := api.apply(ctx, permissions...); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return s.run(ctx, &component{
		name: nodeComponentName, path: self,
		args:       []string{"node", "--dir=" + s.layout.dir, "--bin=" + s.bin, "--index=" + strconv.Itoa(network.index)},
		namespaces: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		started:    network.connect,
		ready: func(ctx context.Context) error {
			if err := httpOK(fmt.Sprintf("http://%s:%d/healthz", network.node(), kubeletHealth))(ctx); err != nil {
				return err
			}
			if err := resolves(ctx, network.node(), "kubernetes.default.svc."+clusterDomain); err != nil {
				return err
			}
			var n corev1.Node
			if err := api.Get(ctx, client.ObjectKey{Name: nodeName}, &n); err != nil {
				return err
			}
			if !nodeReady(&n) {
				return fmt.Errorf("node %s is not ready", nodeName)
			}
			return nil
		},
		grace: time.Second,
		ports: []namedPort{{network.node(), 10250}},
	})
}

// resolves returns nil if the DNS server at an address knows a name.
func resolves(ctx context.Context, server, name string) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server, strconv.Itoa(dnsPort)))
	}}
	_, err := resolver.LookupHost(ctx, name+".")
	return err
}

// createServiceEndpoints gives Service default/kubernetes an address that pods can
// reach. The API server does not: it only knows its address on loopback.
func (a apiClient) createServiceEndpoints(ctx context.Context, network nodeNetwork, port int) error {
	err := a.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kubernetes", Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes", discoveryv1.LabelManagedBy: string(fieldManager)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{network.host()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("endpoints of Service kubernetes: %w", err)
	}
	return nil
}

// importImages imports the images of an archive into the real node.
func (s *supervisor) importImages(archive string) (string, error) {
	c, err := s.find(nodeComponentName)
	if err != nil {
		return "", errors.New("the instance has no real node; start it with up --real-node")
	}
	c.op.Lock()
	defer c.op.Unlock()
	if s.stateOf(c) != running {
		return "", fmt.Errorf("%s is %s; run: localcluster start %s", c.name, s.stateOf(c), c.name)
	}
	s.mu.Lock()
	pid := c.proc.Process.Pid
	s.mu.Unlock()
	return importArchive(s.ctx, s.bin, fmt.Sprintf("/proc/%d/root%s", pid, containerdSocket), archive)
}
