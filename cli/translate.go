package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// translatable are the commands that kuota translate reads.
const translatable = "hyp create hyp-pytorch-job, hyperpod start-job, and aws sagemaker create- and update-compute-quota and -cluster-scheduler-config"

// translateCommand returns the command that prints the command of Kuota for one of HyperPod or of the
// AWS CLI.
func (o *options) translateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "translate -- COMMAND [ARGUMENT...]", Short: "print the kuota command that does what a command of HyperPod does", GroupID: "tasks",
		Long: `Reads hyp create hyp-pytorch-job, hyperpod start-job, or what creates or updates a compute quota or a
cluster scheduler configuration with aws sagemaker. Prints the command of Kuota, and on the standard
error a sentence for each flag that is left out. It runs nothing, and asks no console.`,
		Example: "  kuota translate -- hyp create hyp-pytorch-job --job-name bert --image pytorch/pytorch --namespace hyperpod-ns-vision --instance-type ml.p5.48xlarge --accelerators 2 --command [python,train.py]",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().SetInterspersed(false) // flags after the first word are those of the command
	c.RunE = func(_ *cobra.Command, words []string) error {
		words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word != "" && strings.TrimSpace(word) == "" }) // of a line that goes on
		line, notes, err := translate(words)
		if err != nil {
			return err
		}
		for _, note := range notes {
			fmt.Fprintln(o.messages, clean(note))
		}
		fmt.Fprintln(o.out, quoted(line))
		return nil
	}
	return c
}

// translate returns the command of Kuota for one of HyperPod, as words, and a sentence for all that it
// leaves out.
func translate(words []string) (line, notes []string, err error) {
	t := &translation{}
	is := func(names ...string) bool { return len(words) >= len(names) && slices.Equal(words[:len(names)], names) }
	var run func() error
	switch {
	case is("hyp", "create", "hyp-pytorch-job"):
		t.read(words[3:], hypFlags)
		run = t.hyp
	case is("hyperpod", "start-job"):
		t.read(words[2:], startJobFlags)
		run = t.hyp
	case is("aws", "sagemaker", "create-compute-quota"), is("aws", "sagemaker", "update-compute-quota"):
		t.read(words[3:], quotaFlags)
		run = func() error { return t.quota(words[2] == "update-compute-quota") }
	case is("aws", "sagemaker", "create-cluster-scheduler-config"), is("aws", "sagemaker", "update-cluster-scheduler-config"):
		t.read(words[3:], schedulerFlags)
		run = t.scheduler
	default:
		named := words[:min(len(words), 3)]
		if i := slices.IndexFunc(named, func(word string) bool { return strings.HasPrefix(word, "-") }); i >= 0 {
			named = named[:i]
		}
		return nil, nil, fmt.Errorf("%q is not translated: kuota translate reads %s", strings.Join(named, " "), translatable)
	}
	if err := run(); err != nil {
		return nil, nil, err
	}
	return t.line, t.notes, nil
}

// translation is a command that becomes one of Kuota.
type translation struct {
	given map[string][]string // values of its flags
	left  map[string]bool     // flags that are left out
	line  []string
	notes []string
}

// commandFlags are what a command takes: flags that are translated, switches without a value, and the
// reasons why others are left out.
type commandFlags struct {
	translated, switches []string
	left                 map[string]string
}

// read reads the flags of a command, and notes what is left out.
func (t *translation) read(words []string, known commandFlags) {
	t.given, t.left = map[string][]string{}, map[string]bool{}
	for i := 0; i < len(words); i++ {
		name, value, hasValue := strings.Cut(words[i], "=")
		if words[i] == "-n" {
			name = "--namespace"
		}
		name, isFlag := strings.CutPrefix(name, "--")
		if !isFlag {
			t.note("%s is left out: it belongs to no flag.", words[i])
			continue
		}
		reason, left := known.left[name]
		if !hasValue && i+1 < len(words) {
			next, takes := words[i+1], false
			switch {
			case slices.Contains(known.switches, name):
				takes = next == "true" || next == "false"
			case left, slices.Contains(known.translated, name):
				takes = true
			default:
				takes = !strings.HasPrefix(next, "-")
			}
			if takes {
				i++
				value = next
			}
		}
		switch {
		case left:
			t.left[name] = true
			t.note("--%s is left out: %s.", name, reason)
		case !slices.Contains(known.translated, name):
			t.note("--%s is left out: kuota translate does not know it.", name)
		default:
			t.given[name] = append(t.given[name], value)
		}
	}
}

func (t *translation) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// get returns the value of a flag; the last one, as HyperPod's commands do.
func (t *translation) get(flag string) string {
	if values := t.given[flag]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

func (t *translation) has(flag string) bool { return len(t.given[flag]) > 0 }

// add adds a flag with its value, unless it is empty.
func (t *translation) add(flag, value string) {
	if value != "" {
		t.line = append(t.line, "--"+flag, value)
	}
}

const (
	inManifest = "write it into a manifest, and submit that with kuota submit -f"
	wholeOnly  = "kuota run requests whole accelerators, one if no flag says more; for parts of GPUs, " + inManifest
	printsOnly = "it changes only what the command prints"
)

// hypFlags are the flags of hyp create hyp-pytorch-job.
var hypFlags = commandFlags{
	translated: []string{
		"job-name", "image", "namespace", "queue-name", "priority", "command", "args", "environment", "instance-type", "node-count", "replica-count", "tasks-per-node", "max-retry", "volume",
		"accelerators", "vcpu", "memory", "accelerators-limit", "memory-limit", "max-node-count", "max-replica-count", "elastic-replica-increment-step",
		"elastic-replica-discrete-values", "elastic-graceful-shutdown-timeout-in-seconds", "elastic-scaling-timeout-in-seconds", "elastic-faulty-scale-down-timeout-in-seconds",
	},
	switches: []string{"debug", "deep-health-check-passed-nodes-only"},
	left: map[string]string{
		"version":                             "it is the version of HyperPod's schema",
		"debug":                               printsOnly,
		"pull-policy":                         "the image is pulled by the default of Kubernetes; to change that, " + inManifest,
		"label-selector":                      "kuota run chooses nodes by --pool; for a nodeSelector, " + inManifest,
		"deep-health-check-passed-nodes-only": "Kuota has no deep health checks; for their label as a nodeSelector, " + inManifest,
		"scheduler-type":                      "Kueue admits the task, and the default scheduler of Kubernetes places its pods; for another one, " + inManifest,
		"service-account-name":                "kuota run uses the default service account of the team's namespace; for another one, " + inManifest,
		"vcpu-limit":                          "a pod can use idle vCPU beyond its request",
		"efa":                                 "several pods request the network devices that belong to their accelerators",
		"efa-limit":                           "several pods request the network devices that belong to their accelerators",
		"accelerator-partition-type":          wholeOnly,
		"accelerator-partition-count":         wholeOnly,
		"accelerator-partition-limit":         wholeOnly,
		"preferred-topology":                  "for the annotation kueue.x-k8s.io/podset-preferred-topology, " + inManifest,
		"required-topology":                   "for the annotation kueue.x-k8s.io/podset-required-topology, " + inManifest,
		"elastic-scale-up-snooze-time-in-seconds": "an elastic task rests after growth was taken back, --rest, and not after each start",
	},
}

// startJobFlags are the flags of hyperpod start-job, the command before hyp.
var startJobFlags = commandFlags{
	translated: []string{
		"job-name", "image", "namespace", "queue-name", "priority", "command", "entry-script", "script-args", "environment", "instance-type", "node-count", "tasks-per-node", "max-retry",
		"persistent-volume-claims", "job-kind",
	},
	switches: append([]string{"auto-resume"}, hypFlags.switches...),
	left: func() map[string]string {
		left := maps.Clone(hypFlags.left)
		delete(left, "version")
		maps.Copy(left, map[string]string{
			"auto-resume":         "Kueue and Kubernetes start failed pods again, as often as --tries says",
			"restart-policy":      "pods start again as their kind does by default; to change that, " + inManifest,
			"volumes":             "kuota run mounts claims, and no folder of a node; for a hostPath, " + inManifest,
			"results-dir":         "the command writes its results where it wants to, such as to a volume: -v /path=claim",
			"pre-script":          "kuota run runs one command; put what runs before it into a script: --source",
			"post-script":         "kuota run runs one command; put what runs after it into a script: --source",
			"recipe":              "Kuota has no recipes; write the command that it runs",
			"override-parameters": "Kuota has no recipes; write the command that it runs",
			"config-file":         "kuota translate reads no file; name its values as flags",
		})
		return left
	}(),
}

// accelerators are the GPUs, or Neuron devices, of instance types that have some: --node-count requests
// all of them. TestTranslateWholeNodes of cmd/kuota compares them with the catalog.
var accelerators = map[int64]string{
	1:  "g4dn.16xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.xlarge g5.16xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.xlarge g6.16xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.xlarge g6e.16xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.xlarge g7e.2xlarge g7e.4xlarge g7e.8xlarge gr6.4xlarge gr6.8xlarge p5.4xlarge trn2.3xlarge",
	2:  "g7e.12xlarge",
	4:  "g4dn.12xlarge g5.12xlarge g5.24xlarge g6.12xlarge g6.24xlarge g6e.12xlarge g6e.24xlarge g7e.24xlarge p6e-gb200.36xlarge",
	8:  "g5.48xlarge g6.48xlarge g6e.48xlarge g7e.48xlarge p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge p6-b300.48xlarge",
	16: "trn1.32xlarge trn1n.32xlarge trn2.48xlarge",
}

// acceleratorsOf returns the accelerators of an instance type; 0 if it has none, or is unknown.
func acceleratorsOf(instanceType string) int64 {
	name, ok := strings.CutPrefix(instanceType, "ml.")
	for n, types := range accelerators {
		if ok && slices.Contains(strings.Fields(types), name) {
			return n
		}
	}
	return 0
}

// Names that HyperPod gives the namespace and the queue of a team, and Kuota the queue of a share.
const (
	namespacePrefix = "hyperpod-ns-"
	queueSuffix     = "-localqueue"
	shareInfix      = "-share-"
)

// hyp translates a command that submits a job.
func (t *translation) hyp() error {
	if t.get("job-name") == "" && t.get("image") == "" {
		return errors.New("the command has neither --job-name nor --image, and submits nothing")
	}
	t.line = []string{"kuota", "run", "--detach"}
	t.team()
	t.add("name", t.get("job-name"))
	t.add("image", t.get("image"))
	t.add("class", t.get("priority"))
	t.add("pool", t.get("instance-type"))
	kind := t.pods()
	t.amounts()
	switch tasks := t.get("tasks-per-node"); {
	case tasks == "":
	case isCount(tasks):
		t.add("processes", tasks)
	case kind == "PyTorchJob":
		t.note("--tasks-per-node %s is left out: the operator of PyTorchJobs sets it.", tasks)
	default: // torchrun reads its number of processes there
		t.add("env", "PET_NPROC_PER_NODE="+tasks)
	}
	if retries := t.get("max-retry"); retries != "" {
		n, err := strconv.ParseInt(retries, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("--max-retry %s is no whole number", retries)
		}
		t.add("tries", strconv.FormatInt(n+1, 10)) // the first included
	}
	environment, err := pairs("environment", t.get("environment"))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		t.add("env", name+"="+environment[name])
	}
	if err := t.volumes(); err != nil {
		return err
	}
	return t.words()
}

// team adds the team, and its share.
func (t *translation) team() {
	namespace, queue := t.get("namespace"), t.get("queue-name")
	if namespace == "" {
		namespace = namespaceOf(queue)
	}
	team, named := strings.CutPrefix(namespace, namespacePrefix)
	switch {
	case named:
		t.add("team", team)
	case namespace != "":
		t.note("--namespace %s is left out: kuota run names a team, and not its namespace: --team.", namespace)
	}
	if queue == "" || queue == namespace+queueSuffix {
		return
	}
	if share, ok := strings.CutPrefix(queue, namespace+shareInfix); ok && named {
		t.add("share", share)
		return
	}
	t.note("--queue-name %s is left out: kuota run uses the queue of the team, or of a --share.", queue)
}

// namespaceOf returns the namespace of the team that a queue is named after; empty if none is.
func namespaceOf(queue string) string {
	namespace, own := strings.CutSuffix(queue, queueSuffix)
	if i := strings.LastIndex(queue, shareInfix); !own && i > 0 {
		namespace, own = queue[:i], true
	}
	if !own || !strings.HasPrefix(namespace, namespacePrefix) {
		return ""
	}
	return namespace
}

// pods adds the number of pods, and returns the kind of task.
func (t *translation) pods() (kind string) {
	count := t.get("node-count") + t.get("replica-count") // one of both
	most := t.get("max-node-count") + t.get("max-replica-count")
	several := count != "" && count != "1"
	if count != "" {
		t.add("pods", count)
	}
	sizes := strings.Trim(t.get("elastic-replica-discrete-values"), "'[]")
	step := t.get("elastic-replica-increment-step")
	switch {
	case most != "" || sizes != "": // a Job
		t.add("max-pods", most)
		t.add("sizes", strings.ReplaceAll(sizes, " ", ""))
		if sizes == "" {
			t.add("step", step)
		} else if step != "" {
			t.note("--elastic-replica-increment-step is left out: the task has a list of sizes.")
		}
		t.add("grace", t.get("elastic-graceful-shutdown-timeout-in-seconds"))
		t.add("idle", t.get("elastic-scaling-timeout-in-seconds"))
		t.add("faulty", t.get("elastic-faulty-scale-down-timeout-in-seconds"))
		most = cmp.Or(most, sizes)
	default:
		for _, flag := range []string{"elastic-replica-increment-step", "elastic-graceful-shutdown-timeout-in-seconds", "elastic-scaling-timeout-in-seconds", "elastic-faulty-scale-down-timeout-in-seconds"} {
			if t.has(flag) {
				t.note("--%s is left out: without a --max-node-count the task is not elastic.", flag)
			}
		}
	}
	if most == "" && (several || t.has("job-kind")) {
		kind = "PyTorchJob"
		t.add("kind", kind)
		if several {
			t.note("Several nodes become a PyTorchJob, whose operator must run in the cluster and connects them; without --kind they are a Job of equal pods.")
		}
	}
	return kind
}

// amounts adds the requests of a pod.
func (t *translation) amounts() {
	gpus := t.get("accelerators")
	if gpus == "" {
		gpus = t.get("accelerators-limit")
	}
	if limit := t.get("accelerators-limit"); limit != "" && limit != gpus {
		t.note("--accelerators-limit is left out: the limit of accelerators is the request.")
	}
	memory := t.get("memory")
	if memory == "" {
		memory = t.get("memory-limit")
	}
	if limit := t.get("memory-limit"); limit != "" && limit != memory {
		t.note("--memory-limit is left out: the limit of memory is the request; to use %s GiB, request them with --memory.", limit)
	}
	vcpu, instance := t.get("vcpu"), t.get("instance-type")
	switch whole := acceleratorsOf(instance); {
	case gpus != "" || vcpu != "" || memory != "" || t.left["accelerator-partition-type"]:
	case instance == "":
		t.note("Without --instance-type HyperPod requests no accelerators; kuota run requests one, or in a pool without accelerators one vCPU.")
	case whole > 0: // all of the node
		gpus = strconv.FormatInt(whole, 10)
	default:
		t.note("kuota translate knows no accelerators of %s, so that the pods request one accelerator, or one vCPU where there is none: set --gpus, or --cpu and --memory, to what a whole node has.", instance)
	}
	t.add("gpus", gpus)
	t.add("cpu", vcpu)
	t.add("memory", memory)
}

// volumes adds the claims that are mounted.
func (t *translation) volumes() error {
	for _, text := range t.given["volume"] {
		v, err := pairs("volume", text)
		if err != nil {
			return err
		}
		if v["type"] != "pvc" || v["claim_name"] == "" {
			t.note("--volume %s is left out: kuota run mounts claims, and no folder of a node; for a hostPath, %s.", v["name"], inManifest)
			continue
		}
		mount := v["mount_path"] + "=" + v["claim_name"]
		if v["read_only"] == "true" {
			mount += ":ro"
		}
		t.add("volume", mount)
	}
	for _, text := range t.given["persistent-volume-claims"] {
		for _, one := range items("[" + strings.Trim(text, "[] ") + "]") {
			claim, path, ok := strings.Cut(one, ":")
			if !ok {
				t.note("--persistent-volume-claims %s is left out: it has no path; mount it with -v /path=%s.", one, one)
				continue
			}
			t.add("volume", path+"="+claim)
		}
	}
	return nil
}

// words adds the command after its --.
func (t *translation) words() error {
	var words []string
	if t.has("entry-script") || t.has("script-args") { // of hyperpod start-job, whose command is torchrun
		command := t.get("command")
		if command == "" {
			command = "torchrun"
		}
		words = strings.Fields(command + " " + t.get("entry-script"))
		words = append(words, strings.Fields(t.get("script-args"))...)
		if strings.ContainsAny(t.get("script-args"), `"'`) {
			words = []string{"sh", "-c", strings.TrimSpace(command + " " + t.get("entry-script") + " " + t.get("script-args"))}
		}
	} else {
		words = append(items(t.get("command")), items(t.get("args"))...)
		if t.has("args") && !t.has("command") {
			t.note("--args alone are arguments of the image's command, which kuota run needs: write it before them.")
		}
	}
	if len(words) > 0 {
		t.line = append(append(t.line, "--"), words...)
	}
	return nil
}

// isCount reports whether a text is a whole number.
func isCount(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// items returns the items of a list as the HyperPod CLI takes it: JSON, or [a, b] without quotes. What
// is no list is one line of words.
func items(text string) (list []string) {
	text = strings.TrimSpace(text)
	if json.Unmarshal([]byte(text), &list) == nil {
		return list
	}
	inner, isList := strings.CutPrefix(text, "[")
	if !isList {
		return strings.Fields(text)
	}
	s := shorthand{rest: text} // which has quotes, too
	if read, ok := s.value().([]any); ok && !s.invalid && s.rest == "" {
		for _, item := range read {
			list = append(list, fmt.Sprint(item))
		}
		return list
	}
	for item := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), ",") {
		list = append(list, strings.Trim(strings.TrimSpace(item), `"'`))
	}
	return list
}

// pairs returns names with values: JSON, {a: b} without quotes, or a=b,c=d.
func pairs(flag, text string) (map[string]string, error) {
	text = strings.TrimSpace(text)
	named := map[string]string{}
	if text == "" {
		return named, nil
	}
	var typed map[string]any
	if readNumbers(text, &typed) == nil {
		for name, value := range typed {
			named[name] = fmt.Sprint(value)
		}
		return named, nil
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	for part := range strings.SplitSeq(inner, ",") {
		name, value, ok := strings.Cut(part, "=")
		if before, after, colon := strings.Cut(part, ":"); colon && (!ok || len(before) < len(name)) {
			name, value, ok = before, after, true
		}
		if !ok {
			return nil, fmt.Errorf("--%s %s is not understood: write it as JSON, or as name=value", flag, text)
		}
		unquoted := func(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }
		named[unquoted(name)] = unquoted(value)
	}
	return named, nil
}
