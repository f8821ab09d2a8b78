package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// peerSource is a program of three parts. Of a JobSet, the pod with index 0 waits until
// the other one connects to it by its name in the cluster's DNS. Of a RayCluster it takes
// the place of Ray, which cannot be had here: it answers the health checks that KubeRay
// adds, and prints the command that KubeRay wrote for Ray.
const peerSource = `package main

import ("fmt"; "net"; "net/http"; "os"; "time")

func main() {
	if command := os.Getenv("KUBERAY_GEN_RAY_START_CMD"); command != "" {
		fmt.Println("in place of", command)
		fmt.Println(http.ListenAndServe(":52365", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/healthz" { http.NotFound(w, r) }
		})))
		os.Exit(1)
	}
	if os.Getenv("JOB_COMPLETION_INDEX") == "0" {
		listener, err := net.Listen("tcp", ":9000")
		if err == nil { _, err = listener.Accept() }
		fmt.Println("rank 0: a peer connected", err)
		return
	}
	var err error
	for range 300 {
		if _, err = net.DialTimeout("tcp", os.Getenv("RANK0")+":9000", time.Second); err == nil { break }
		time.Sleep(200 * time.Millisecond)
	}
	fmt.Println("rank 1: connected to", os.Getenv("RANK0"), err)
}
`

const realKinds = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
spec: {nodeLabels: {kubernetes.io/hostname: real-node}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: "1"}, {name: memory, nominalQuota: 1Gi}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: queue, namespace: default}
spec: {clusterQueue: all}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: default, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  replicatedJobs:
  - name: workers
    replicas: 1
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: localhost/peer:1
              imagePullPolicy: Never
              env: [{name: RANK0, value: train-workers-0-0.train}]
              resources: {limits: {cpu: 100m, memory: 64Mi}}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: ray
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: queue}
  annotations: {ray.io/overwrite-container-cmd: "true"} # so that KubeRay writes no command for bash
spec:
  rayVersion: 2.53.0 # the first one whose health is checked by HTTP
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: head, image: "localhost/peer:1", imagePullPolicy: Never, resources: {limits: {cpu: 100m, memory: 64Mi}}}]}}
`

// A JobSet and a RayCluster run in containers on the real node: Kueue, the operators,
// kubelet, DNS and the containers are real, and a program of ours is in the place of Ray.
func TestKindsOnRealNode(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		t.Skip("LOCALCLUSTER_BIN is not set to a folder of built binaries")
	}
	for _, err := range []error{checkNode(bin), checkOperators(bin, []string{"jobset", "ray"})} {
		if err != nil {
			t.Skip(err)
		}
	}
	l := startInstance(t, "--real-node", "--kinds", "jobset,ray")
	dir := t.TempDir()
	source, binary, archive := filepath.Join(dir, "main.go"), filepath.Join(dir, "peer"), filepath.Join(dir, "peer.tar")
	if err := os.WriteFile(source, []byte(peerSource), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, "env", "CGO_ENABLED=0", "go", "build", "-o", binary, source)
	if err := writeImage(archive, "localhost/peer:1", binary); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, "import", archive, "--dir", l.dir); err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
	kubectl(t, l.kubeconfig(), realKinds, "apply", "-f", "-")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubectl(t, l.kubeconfig(), "", "get", "workloads,jobsets,rayclusters,pods,events", "--output", "wide"))
		}
	})
	// returns waits until kubectl returns this.
	returns := func(want string, args ...string) {
		t.Helper()
		eventually(t, func() error {
			out, err := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", l.kubeconfig()}, args...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				return fmt.Errorf("kubectl %s returns %q (%v), want %q", strings.Join(args, " "), out, err, want)
			}
			return nil
		})
	}
	returns("rank 0: a peer connected <nil>", "logs", "--selector", "jobset.sigs.k8s.io/jobset-name=train,batch.kubernetes.io/job-completion-index=0")
	returns("rank 1: connected to train-workers-0-0.train <nil>", "logs", "--selector", "jobset.sigs.k8s.io/jobset-name=train,batch.kubernetes.io/job-completion-index=1")
	returns("Completed", "get", "jobset", "train", "--output", "jsonpath={.status.terminalState}")
	returns("in place of ray start --head", "logs", "--selector", "ray.io/cluster=ray")
	returns("ready", "get", "raycluster", "ray", "--output", "jsonpath={.status.state}")
	returns("JobSet Succeeded, RayCluster ,", "get", "workloads", "--sort-by=.metadata.name", "--output",
		`jsonpath={range .items[*]}{.metadata.ownerReferences[0].kind} {.status.conditions[?(@.type=="Finished")].reason}{", "}{end}`)
	// Kueue stops it: KubeRay deletes the pod, and the kubelet its container.
	kubectl(t, l.kubeconfig(), "", "patch", "clusterqueue", "all", "--type=merge", "--patch", `{"spec": {"stopPolicy": "HoldAndDrain"}}`)
	returns("suspended", "get", "raycluster", "ray", "--output", "jsonpath={.status.state}")
	returns("No resources found", "get", "pods", "--selector", "ray.io/cluster=ray")
}
