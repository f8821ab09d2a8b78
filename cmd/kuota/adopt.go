package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/spec/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const adoptUsage = `usage: kuota adopt [--dry-run] [--select NAMES] [--output text|yaml|json] [--wait DURATION] [flags of kuota]

Creates allocations that describe existing ClusterQueues, and the cluster policy if
there is none. The console then takes the ClusterQueues over without changing their
specs. Without --select it adopts all that an allocation describes exactly; NAMES are
ClusterQueues, separated by commas, also ones that can only be observed.
--dry-run prints the plan and creates nothing; with --output yaml it prints the objects.
It has the permissions of the kubeconfig's user, and accepts all flags and KUOTA_
variables of the console: use those that the console is started with.
`

const releaseUsage = `usage: kuota release NAMES... [--wait DURATION] [flags of kuota]

Gives the queues of teams back: deletes their allocations, and keeps ClusterQueue,
LocalQueue and namespace as they are, without Kuota's labels. NAMES are allocations.
`

// adoptOptions are the flags of kuota adopt and kuota release.
type adoptOptions struct {
	config config
	dryRun bool
	names  []string
	output string        // text, yaml or json
	wait   time.Duration // for the controllers
}

// parseAdopt reads the flags of kuota adopt, or of kuota release, and environment
// variables for flags that are not set.
func parseAdopt(command, usage string, args []string, env func(string) string) (o adoptOptions, err error) {
	level, selected := "info", ""
	flags := flag.NewFlagSet("kuota "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.config.register(flags, &level)
	flags.DurationVar(&o.wait, "wait", time.Minute, "how long to wait for the console")
	if command == "adopt" {
		flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and create nothing")
		flags.StringVar(&selected, "select", "", "ClusterQueues to adopt")
		flags.StringVar(&o.output, "output", "text", "text, yaml or json")
		flags.StringVar(&o.output, "o", "text", "text, yaml or json")
	} else {
		// flag stops at the first argument; names may come before flags.
		for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			o.names, args = append(o.names, args[0]), args[1:]
		}
	}
	_, invalid, err := readFlags(flags, args, env)
	if err != nil {
		return o, err
	}
	o.names = append(o.names, list(selected)...)
	if o.wait <= 0 {
		invalid = append(invalid, fmt.Errorf("wait %s: use a duration above 0, such as 1m", o.wait))
	}
	switch {
	case command == "release":
		if o.names = append(o.names, flags.Args()...); len(o.names) == 0 {
			invalid = append(invalid, fmt.Errorf("name at least one allocation\n%s", usage))
		}
	case flags.NArg() > 0:
		invalid = append(invalid, fmt.Errorf("unexpected argument %q: name ClusterQueues with --select\n%s", flags.Arg(0), usage))
	case o.output != "text" && o.output != "json" && (o.output != "yaml" || !o.dryRun):
		invalid = append(invalid, fmt.Errorf("output %q: use text or json, or yaml with --dry-run", o.output))
	}
	return o, errors.Join(append(invalid, o.config.check(level)...)...)
}

// connect returns a client of the cluster that reads and writes without a cache, and the
// address of the API server.
func (c config) connect() (client.Client, string, error) {
	connection, err := c.restConfig()
	if err != nil {
		return nil, "", err
	}
	direct, err := client.New(connection, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connect to %s: %w", connection.Host, err)
	}
	return direct, connection.Host, nil
}

// adoptCommand adopts ClusterQueues.
func adoptCommand(ctx context.Context, args []string, s streams) error {
	o, err := parseAdopt("adopt", adoptUsage, args, os.Getenv)
	if err != nil {
		return err
	}
	c, host, err := o.config.connect()
	if err != nil {
		return err
	}
	kueue := &reconcile.KueueReconciler{APIReader: c, Install: o.config.kueue}
	plan, err := adopt.ReadPlan(ctx, c, o.config.naming, func(ctx context.Context) (kueueconfig.Current, error) {
		state, err := kueue.State(ctx)
		return state.Current, err
	})
	if err != nil {
		return fmt.Errorf("cluster %s: %w", host, err)
	}
	selected, err := adopt.Select(plan, o.names)
	if err != nil {
		return err
	}
	printed := newAdoptOutput(host, plan, selected, o)
	if o.dryRun {
		return printed.write(s.out, o.output, plan, selected)
	}
	if len(selected) == 0 {
		printed.Results = []adoptResult{}
		if err := printed.write(s.out, o.output, plan, selected); err != nil {
			return err
		}
		return errors.New("no ClusterQueue can be adopted without a change; name those to observe with --select")
	}
	results, err := adopt.Adopt(ctx, c, plan, selected, "kuota adopt", nil)
	if err != nil {
		return err
	}
	failed := printed.addResults(ctx, c, results, o.wait)
	if err := printed.write(s.out, o.output, plan, selected); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s not adopted", count(failed, "ClusterQueue"))
	}
	return nil
}

// adoptOutput is the output of kuota adopt, as JSON has it.
type adoptOutput struct {
	Cluster         string        `json:"cluster"` // address of the API server
	DryRun          bool          `json:"dryRun"`
	CreatesPolicy   bool          `json:"createsPolicy"`
	KueueChanges    string        `json:"kueueChanges"`  // by the policy
	PolicyProblem   string        `json:"policyProblem"` // why KueueChanges is unknown
	Queues          []adoptQueue  `json:"clusterQueues"`
	PriorityClasses []adoptClass  `json:"priorityClasses"`
	Results         []adoptResult `json:"results,omitempty"`
}

type adoptQueue struct {
	Name     string   `json:"name"`
	Verdict  string   `json:"verdict"` // Manage, Observe or Refuse
	Selected bool     `json:"selected"`
	Team     string   `json:"team"` // its allocation; empty for none
	Reasons  []string `json:"reasons"`
	Notes    []string `json:"notes"`
}

type adoptClass struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

type adoptResult struct {
	Queue   string `json:"clusterQueue"`
	Team    string `json:"team"`
	Adopted bool   `json:"adopted"`
	Message string `json:"message"`
}

func newAdoptOutput(host string, plan adoption.Plan, selected []adoption.Queue, o adoptOptions) adoptOutput {
	out := adoptOutput{
		Cluster: host, DryRun: o.dryRun, CreatesPolicy: adopt.NeedsPolicy(plan, selected), Queues: []adoptQueue{}, PriorityClasses: []adoptClass{},
	}
	if out.CreatesPolicy {
		out.KueueChanges, out.PolicyProblem = plan.KueueChanges, plan.PolicyProblem
		for _, class := range plan.PriorityClasses {
			out.PriorityClasses = append(out.PriorityClasses, adoptClass{class.Name, string(class.Verdict), class.Reason})
		}
	}
	chosen := map[string]bool{}
	for _, q := range selected {
		chosen[q.Name] = true
	}
	for _, q := range plan.Queues {
		team := q.Team
		if q.Allocation != nil {
			team = q.Allocation.Name
		}
		out.Queues = append(out.Queues, adoptQueue{q.Name, string(q.Verdict), chosen[q.Name], team, append([]string{}, q.Reasons...), append([]string{}, q.Notes...)})
	}
	return out
}

// addResults waits until the console has reported on each allocation, and returns the
// number of ClusterQueues that are not adopted.
func (out *adoptOutput) addResults(ctx context.Context, c client.Client, results []adopt.Result, wait time.Duration) (failed int) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for _, r := range results {
		result := adoptResult{Queue: r.Queue, Team: r.Team}
		if r.Err != nil {
			result.Message = r.Err.Error()
		} else {
			result.Adopted, result.Message = awaitReady(ctx, c, r.Team)
		}
		if !result.Adopted {
			failed++
		}
		out.Results = append(out.Results, result)
	}
	return failed
}

// awaitReady waits until the allocation of a team is ready or cannot become ready, and
// returns the message of the condition.
func awaitReady(ctx context.Context, c client.Client, team string) (ready bool, message string) {
	message = "the console has not reported on it yet: is it running?"
	// While the policy is applied, allocations report that a pool is missing.
	err := wait.PollUntilContextCancel(ctx, awaitInterval, true, func(ctx context.Context) (bool, error) {
		var allocation v1alpha1.ComputeAllocation
		if err := c.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(allocation.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.ObservedGeneration != allocation.Generation {
			return false, nil
		}
		message = condition.Message
		return condition.Status == metav1.ConditionTrue, nil
	})
	if err != nil && ctx.Err() == nil {
		message = err.Error()
	}
	return err == nil, message
}

// awaitInterval is how often an allocation is read that the console is to change.
const awaitInterval = 250 * time.Millisecond

// write writes the plan and the results as text or JSON, or the objects as YAML.
func (out adoptOutput) write(w io.Writer, format string, plan adoption.Plan, selected []adoption.Queue) error {
	switch format {
	case "json":
		return writeJSON(w, out)
	case "yaml":
		var documents []string
		if out.CreatesPolicy {
			documents = append(documents, manifest.PolicyYAML(plan.Policy))
		}
		for _, q := range selected {
			documents = append(documents, manifest.AllocationYAML(q.Allocation))
		}
		_, err := io.WriteString(w, strings.Join(documents, "---\n"))
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s\n", out.Cluster)
	for _, q := range out.Queues {
		mark := " "
		if q.Selected {
			mark = "*"
		}
		fmt.Fprintf(&b, "\n%s %-8s %s", mark, q.Verdict, q.Name)
		if q.Team != "" && q.Team != q.Name {
			fmt.Fprintf(&b, ", as team %s", q.Team)
		}
		fmt.Fprintln(&b)
		for _, line := range append(append([]string{}, q.Reasons...), q.Notes...) {
			fmt.Fprintln(&b, indent(line))
		}
	}
	if len(out.Queues) == 0 {
		fmt.Fprintln(&b, "\nKuota manages all ClusterQueues of this cluster.")
	}
	out.writePolicy(&b)
	for _, r := range out.Results {
		state := "not adopted: "
		if r.Adopted {
			state = "adopted: "
		}
		fmt.Fprintf(&b, "\n%s %s%s\n", r.Queue, state, r.Message)
	}
	if out.DryRun {
		fmt.Fprintln(&b, "\nDry run: nothing was created. Those with * would be.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writePolicy writes what is created with the policy.
func (out adoptOutput) writePolicy(b *strings.Builder) {
	if !out.CreatesPolicy {
		return
	}
	fmt.Fprintln(b, "\n* the cluster policy, with a pool for each ResourceFlavor")
	for _, class := range out.PriorityClasses {
		fmt.Fprintf(b, "  %-8s WorkloadPriorityClass %s\n", class.Verdict, class.Name)
		if class.Reason != "" {
			fmt.Fprintln(b, indent(class.Reason))
		}
	}
	switch {
	case out.KueueChanges != "":
		fmt.Fprintf(b, "    The policy changes Kueue's configuration, and Kueue restarts once:\n%s\n", indent(out.KueueChanges))
	case out.PolicyProblem != "":
		fmt.Fprintf(b, "    It is unknown what the policy changes in Kueue's configuration: %s\n", out.PolicyProblem)
	}
}

// releaseCommand gives the queues of teams back.
func releaseCommand(ctx context.Context, args []string, s streams) error {
	o, err := parseAdopt("release", releaseUsage, args, os.Getenv)
	if err != nil {
		return err
	}
	c, host, err := o.config.connect()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "cluster %s\n", host)
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	var failed []error
	for _, team := range o.names {
		released, err := adopt.Release(ctx, c, team, "kuota release")
		if err == nil {
			err = awaitDeleted(ctx, c, team)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("release %s: %w", team, err))
			continue
		}
		fmt.Fprintf(s.out, "%s released: ClusterQueue %s stays as it is\n", team, cmp.Or(released.Status.ClusterQueue, released.Spec.ClusterQueueName, "of the team"))
	}
	return errors.Join(failed...)
}

// awaitDeleted waits until the console has released the objects of a team.
func awaitDeleted(ctx context.Context, c client.Client, team string) error {
	err := wait.PollUntilContextCancel(ctx, awaitInterval, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: team}, &v1alpha1.ComputeAllocation{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil && ctx.Err() != nil {
		return errors.New("the console has not released its objects yet: is it running?")
	}
	return err
}
