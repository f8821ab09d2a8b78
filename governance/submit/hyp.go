package submit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

// hyperPodPrefix is the prefix of HyperPod's instance types.
const hyperPodPrefix = "ml."

// HyperPodCommand returns the request as a command of the HyperPod CLI (3.x), or because,
// the reason why the CLI cannot express it. Both are empty if the pool is not one of
// HyperPod's instance types.
func (p Plan) HyperPodCommand() (command, because string) {
	pool := p.QueuePool
	if pool.Grouped || len(pool.Types) != 1 || !strings.HasPrefix(pool.Types[0], hyperPodPrefix) {
		return "", ""
	}
	if len(p.AnyOf) > 0 {
		return "", "The HyperPod CLI takes one instance type: choose one pool."
	}
	if p.Script != "" {
		return "", "The HyperPod CLI takes no script: give a command."
	}
	lines := []string{"hyp create hyp-pytorch-job"}
	add := func(flag, value string) { lines = append(lines, "--"+flag+" "+value) }
	add("job-name", p.name())
	add("image", shellQuote(p.image()))
	add("namespace", p.Team.Namespace)
	add("queue-name", p.Team.Queue)
	if p.Class != "" {
		add("priority", p.Class)
	}
	if command := p.command(); command != nil {
		list, err := json.Marshal(command)
		if err != nil {
			return "", err.Error()
		}
		add("command", shellQuote(string(list)))
	}
	add("instance-type", pool.Types[0])
	accelerators := p.PodResources[pool.Instance.AcceleratorResource]
	processes := accelerators
	if p.Processes > 0 {
		processes = resources.Amount(p.Processes)
	}
	several := p.Pods > 1 || p.Elastic != nil
	switch {
	case several && accelerators > 0 && accelerators == pool.Instance.Accelerators:
		// For several nodes the CLI requests whole nodes and accepts no amounts.
		add("node-count", strconv.Itoa(int(p.Pods)))
		add("tasks-per-node", strconv.FormatInt(int64(processes), 10))
		p.addSizes(add)
	case several && pool.Instance.Accelerators == 0:
		return "", "The HyperPod CLI takes several pods as whole instances with accelerators only."
	case p.Elastic != nil:
		return "", fmt.Sprintf("The HyperPod CLI takes elastic tasks as whole instances only: request %d accelerators in each pod.", pool.Instance.Accelerators)
	case several:
		return "", fmt.Sprintf("The HyperPod CLI takes several pods as whole instances only: request %d accelerators in each, or one pod.", pool.Instance.Accelerators)
	default:
		p.addAmounts(add, accelerators, processes)
	}
	return strings.Join(lines, " \\\n  ") + "\n", ""
}

// HyperPodOmits are the fields of an ElasticJob that the HyperPod CLI has no flags for.
const HyperPodOmits = "faultyScaleDownTimeoutInSeconds, minStablePeriodSeconds and backoffMaxSeconds"

// addSizes adds the sizes of an elastic task.
func (p Plan) addSizes(add func(flag, value string)) {
	e := p.Elastic
	if e == nil {
		return
	}
	add("max-node-count", strconv.Itoa(int(e.MaxReplicas)))
	if e.ReplicaIncrementStep != nil {
		add("elastic-replica-increment-step", strconv.Itoa(int(*e.ReplicaIncrementStep)))
	} else {
		var sizes []string
		for _, size := range e.ReplicaDiscreteValues {
			sizes = append(sizes, strconv.Itoa(int(size)))
		}
		add("elastic-replica-discrete-values", "'["+strings.Join(sizes, ",")+"]'")
	}
	add("elastic-graceful-shutdown-timeout-in-seconds", strconv.Itoa(int(e.GracefulShutdownTimeoutInSeconds)))
	add("elastic-scaling-timeout-in-seconds", strconv.Itoa(int(e.ScalingTimeoutInSeconds)))
}

// addAmounts adds the amounts of a single pod.
func (p Plan) addAmounts(add func(flag, value string), accelerators, processes resources.Amount) {
	both := func(flag, value string) {
		add(flag, value)
		add(flag+"-limit", value)
	}
	if processes > 0 {
		add("tasks-per-node", strconv.FormatInt(int64(processes), 10))
	}
	if accelerators > 0 {
		both("accelerators", strconv.FormatInt(int64(accelerators), 10))
	}
	if part := p.PerPod.Partition; part != nil && part.Count > 0 {
		add("accelerator-partition-type", part.Profile)
		add("accelerator-partition-count", strconv.FormatInt(part.Count, 10))
		add("accelerator-partition-limit", strconv.FormatInt(part.Count, 10))
	}
	if vcpu := p.PodResources[catalog.CPU]; vcpu > 0 {
		add("vcpu", quota.Number(catalog.CPU, vcpu))
	}
	if memory := p.PodResources[catalog.Memory]; memory > 0 {
		both("memory", quota.Number(catalog.Memory, memory))
	}
}

// Kubectl returns the command that submits a manifest in a file. A task is created: apply of
// the same file would later suspend it, which admission refuses, and copies objects into an
// annotation, which is too small for a long script. A service is applied.
func (p Plan) Kubectl() string {
	if p.Serving != nil {
		return "kubectl apply -f"
	}
	return "kubectl create -f"
}

// KubectlCommand returns the command that submits a manifest, with its text.
func (p Plan) KubectlCommand(m Manifest) string {
	return fmt.Sprintf("%s - <<'EOF'\n%sEOF\n", p.Kubectl(), m.Text)
}

// shellQuote quotes text for a shell if needed.
func shellQuote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:@", c))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
