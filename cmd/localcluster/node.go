package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// node is the first process of the real node. It has a PID, a mount and a network
// namespace of its own: when it ends in any way, the kernel kills containerd, the
// kubelet and all containers, and removes their mounts and network interfaces.
//
//	supervisor ─▶ node (PID 1) ─▶ containerd ─▶ shims ─▶ containers
//	                           ├▶ kubelet
//	                           ├▶ kube-proxy
//	                           └▶ CoreDNS
//
// Only cgroups have no namespace that ends; removeCgroups removes them.
type node struct {
	layout layout
	bin    string
	index  int
}

const (
	nodeName         = "real-node"
	containerdSocket = "/run/containerd/containerd.sock"
	cniPlugins       = "/usr/lib/cni" // Debian's folder
	kubeletHealth    = 10248
	clusterDomain    = "cluster.local"
	dnsPort          = 53
)

// tunables are settings of the kernel that the kubelet writes and that are not
// part of a namespace. The node has files in their place.
var tunables = []string{"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom"}

// run starts everything on the node, and returns when a part of it ends.
func (n *node) run() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		os.Exit(0)
	}()
	// containerd finds runc and its shim in PATH.
	if err := os.Setenv("PATH", n.bin+":/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	for _, step := range []func() error{n.mount, n.connect, n.writeConfig, func() error { return makeCgroups(n.layout) }} {
		if err := step(); err != nil {
			return err
		}
	}
	containerd, err := n.start("containerd", "--config", n.layout.node("containerd.toml"))
	if err != nil {
		return err
	}
	if err := n.importPause(); err != nil {
		return fmt.Errorf("%w; the end of containerd's log:\n%s", err, logTail(n.layout.log("containerd")))
	}
	children := map[int]string{containerd: "containerd"}
	for name, args := range map[string][]string{
		"kubelet": {
			"--config=" + n.layout.node("kubelet.yaml"), "--kubeconfig=" + n.layout.componentConfig("kubelet"),
			"--hostname-override=" + nodeName, "--node-ip=" + n.network().node(), "--node-labels=node.kubernetes.io/instance-type=" + nodeName,
		},
		"kube-proxy": {
			"--kubeconfig=" + n.layout.componentConfig("kube-proxy"), "--hostname-override=" + nodeName, "--proxy-mode=iptables",
			// Containers of one bridge answer each other directly, without the
			// translation back, unless the source is translated too.
			"--masquerade-all", "--cluster-cidr=" + n.network().pods(),
			// These settings belong to this machine.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s",
		},
		"coredns": {"-conf", n.layout.node("Corefile")},
	} {
		pid, err := n.start(name, args...)
		if err != nil {
			return err
		}
		children[pid] = name
	}
	for { // also collects the orphans of this PID namespace
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("wait for processes: %w", err)
		}
		if name := children[pid]; name != "" {
			return fmt.Errorf("%s ended (exit code %d); the end of its log:\n%s", name, status.ExitStatus(), logTail(n.layout.log(name)))
		}
	}
}

func (n *node) network() nodeNetwork { return nodeNetwork{index: n.index} }

// mount gives the node its own /proc, /run, /var/lib and /var/log.
func (n *node) mount() error {
	resolv, err := os.ReadFile("/etc/resolv.conf") // may be a link into /run
	if err != nil {
		resolv = nil
	}
	for _, name := range []string{"lib", "log", "cni"} {
		if err := os.MkdirAll(n.layout.node(name), 0o755); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	if err := os.WriteFile(n.layout.node("resolv.conf"), resolv, 0o644); err != nil {
		return fmt.Errorf("write resolv.conf: %w", err)
	}
	type mount struct {
		source, target, kind string
		flags                uintptr
	}
	mounts := []mount{
		{target: "/", flags: syscall.MS_REC | syscall.MS_PRIVATE}, // nothing reaches this machine's mounts,
		{target: "/", flags: syscall.MS_REC | syscall.MS_SHARED},  // and volumes reach containers
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
		{n.layout.node("lib"), "/var/lib", "", syscall.MS_BIND},
		{n.layout.node("log"), "/var/log", "", syscall.MS_BIND},
	}
	for _, name := range tunables {
		file := n.layout.node(strings.ReplaceAll(name, "/", "."))
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.WriteFile(file, value, 0o644)); err != nil {
			return fmt.Errorf("copy kernel setting %s: %w", name, err)
		}
		mounts = append(mounts, mount{file, filepath.Join("/proc/sys", name), "", syscall.MS_BIND})
	}
	for _, m := range mounts {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// connect configures the interface that the supervisor moves into the node's
// network namespace.
func (n *node) connect() error {
	err := waitFor(context.Background(), 10*time.Second, func(context.Context) error {
		_, err := net.InterfaceByName(nodeInterface)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the network interface: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enable forwarding: %w", err)
	}
	return n.network().configureNode()
}

// start starts a program in the background and returns its pid. run waits for it.
func (n *node) start(name string, args ...string) (int, error) {
	log, err := os.OpenFile(n.layout.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	path := filepath.Join(n.bin, name)
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{Files: []*os.File{nil, log, log}})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	return p.Pid, nil
}

// importPause waits until containerd answers and imports the pause image.
func (n *node) importPause() error {
	err := waitFor(context.Background(), startLimit, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", containerdSocket)
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	_, err = importArchive(context.Background(), n.bin, containerdSocket, pauseArchive(n.bin))
	return err
}

// importArchive imports images into the containerd of the socket, for the kubelet.
func importArchive(ctx context.Context, bin, socket, archive string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "ctr"), "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("import %s: %w\n%s", archive, err, lastLines(out, tailLines))
	}
	return strings.TrimSpace(string(out)), nil
}

// writeConfig writes the configuration of containerd, of its network plugins, of the
// kubelet and of CoreDNS.
func (n *node) writeConfig() error {
	cgroup := n.layout.cgroup()
	for name, text := range map[string]string{
		// restrict_oom_score_adj: this user may not be allowed to lower the score.
		// The opt plugin would create /opt/containerd.
		"containerd.toml": fmt.Sprintf(`version = 3
disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.nri.v1.nri']
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '%s'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['%s']
    conf_dir = '%s'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
`, pauseImage, cniPlugins, n.layout.node("cni")),
		"cni/10-bridge.conflist": fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "localcluster", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`, n.network().pods()),
		// Images fill a part of a disk that is not only for them: no eviction by
		// its usage.
		"kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
evictionHard: {memory.available: 100Mi, nodefs.available: 0%%, imagefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
oomScoreAdj: 0
volumePluginDir: /var/lib/kubelet/volumeplugins
resolvConf: %q
clusterDomain: %s
clusterDNS: [%s]
healthzBindAddress: 0.0.0.0
healthzPort: %d
authentication: {x509: {clientCAFile: %q}}
tlsCertFile: %q
tlsPrivateKeyFile: %q
`, containerdSocket, cgroup, n.layout.node("resolv.conf"), clusterDomain, n.network().node(), kubeletHealth, n.layout.pki("ca.crt"), n.layout.pki("kubelet.crt"), n.layout.pki("kubelet.key")),
		"Corefile": fmt.Sprintf(`%[1]s in-addr.arpa {
  bind %[2]s
  errors
  kubernetes %[1]s in-addr.arpa {
    kubeconfig %[3]q
  }
}
`, clusterDomain, n.network().node(), n.layout.componentConfig("coredns")),
	} {
		if err := os.WriteFile(n.layout.node(name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// cgroup returns the name of the cgroup of all pods on the real node.
func (l layout) cgroup() string {
	return fmt.Sprintf("localcluster-%x", sha256.Sum256([]byte(l.dir)))[:len("localcluster-")+8]
}

// cgroups returns the folder of that cgroup in each hierarchy of this machine:
// one in version 2, one per controller in version 1.
func (l layout) cgroups() (folders []string) {
	const root = "/sys/fs/cgroup"
	hierarchies := []string{root}
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
		files, _ := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
		hierarchies = hierarchies[:0]
		for _, f := range files {
			hierarchies = append(hierarchies, filepath.Dir(f))
		}
	}
	for _, h := range hierarchies {
		folders = append(folders, filepath.Join(h, l.cgroup()))
	}
	return folders
}

// makeCgroups creates the cgroup, which the kubelet expects to exist.
func makeCgroups(l layout) error {
	for _, folder := range l.cgroups() {
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("create cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroups removes the cgroup with all below it, once its processes have
// ended. Without a real node there is none.
func removeCgroups(l layout) {
	_ = waitFor(context.Background(), 5*time.Second, func(context.Context) error {
		var errs []error
		for _, root := range l.cgroups() {
			var below []string
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					below = append(below, path)
				}
				return nil
			})
			for _, folder := range slices.Backward(below) {
				if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
		return errors.Join(errs...)
	})
}
