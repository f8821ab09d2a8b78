package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// object is a custom resource as the API has it. Commands change some fields, and send all others
// back as they are.
type object map[string]any

// field returns the object at a path of fields, which is created if there is none.
func (o object) field(path ...string) object {
	for _, name := range path {
		below, ok := o[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			o[name] = below
		}
		o = below
	}
	return o
}

// savedAnswer is what a save changed, or would change.
type savedAnswer struct {
	Saved      bool          `json:"saved"`
	Unchanged  bool          `json:"unchanged"`
	Interrupts bool          `json:"interrupts"`
	Restarts   bool          `json:"restarts"`
	Reranks    bool          `json:"reranks"`
	Manual     string        `json:"manual"`
	Quota      []quotaChange `json:"quota"`
	Settings   []fieldChange `json:"settings"`
	Classes    []struct {
		Name   string `json:"name"`
		Before *int32 `json:"before"`
		After  *int32 `json:"after"`
		Tasks  int    `json:"tasks"`
	} `json:"classes"`
	OverCapacity []struct {
		Pool      string `json:"pool"`
		Resource  string `json:"resource"`
		Allocated string `json:"allocated"`
		Physical  string `json:"physical"`
	} `json:"overCapacity"`
	Warnings []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"warnings"`
	Effect  *effect `json:"effect"`
	Unknown string  `json:"unknown"`
}

type quotaChange struct {
	Pool     string `json:"pool"`
	Resource string `json:"resource"`
	Before   string `json:"before"`
	After    string `json:"after"`
}

type fieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// effect is what Kueue's scheduler does with tasks after a change, simulated.
type effect struct {
	Known     bool       `json:"known"`
	Unknown   string     `json:"unknown"`
	Started   []affected `json:"started"`
	Preempted []affected `json:"preempted"`
	Evicted   []affected `json:"evicted"`
	Missed    []affected `json:"missed"`
	Exceeding []affected `json:"exceeding"`
	Others    bool       `json:"others"`
}

type affected struct {
	Team   string `json:"team"`
	Name   string `json:"name"`
	Anyway bool   `json:"anyway"`
}

// printReview prints what saving would change.
func (o *options) printReview(a savedAnswer) {
	line := func(format string, args ...any) { fmt.Fprintln(o.messages, clean(fmt.Sprintf(format, args...))) }
	arrow := func(before, after string) string {
		if before == "" {
			before = "none"
		}
		if after == "" {
			after = "none"
		}
		return before + " → " + after
	}
	for _, q := range a.Quota {
		if q.Before != q.After {
			line("%s %s: %s", q.Pool, q.Resource, arrow(q.Before, q.After))
		}
	}
	for _, s := range a.Settings {
		line("%s: %s", s.Field, arrow(s.Before, s.After))
	}
	weight := func(n *int32) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(int(*n))
	}
	for _, class := range a.Classes {
		line("Weight of class %s: %s, %s", class.Name, arrow(weight(class.Before), weight(class.After)), count(class.Tasks, "task"))
	}
	for _, over := range a.OverCapacity {
		line("Over capacity: all teams have %s of %s %s in %s.", over.Allocated, over.Physical, over.Resource, over.Pool)
	}
	for _, w := range a.Warnings {
		line("%s: %s", w.Field, w.Message)
	}
	if a.Restarts {
		line("Kueue restarts: for some seconds no task starts, and submitting a job fails.")
	}
	if a.Reranks {
		line("Tasks get new priorities; preemption by priority is off until all have theirs.")
	}
	if a.Manual != "" {
		fmt.Fprintf(o.messages, "Apply this change of Kueue's configuration yourself:\n%s\n", cleanLines(a.Manual))
	}
	if a.Unknown != "" {
		line("This review is incomplete: %s", a.Unknown)
	}
	if e := a.Effect; e != nil {
		if !e.Known {
			line("Effects on running tasks are not known: %s", e.Unknown)
			return
		}
		for _, list := range []struct {
			verb  string
			tasks []affected
		}{{"Starts", e.Started}, {"Preempts", e.Preempted}, {"Requeues", e.Evicted}, {"No longer starts", e.Missed}, {"Can no longer start", e.Exceeding}} {
			var names []string
			for _, t := range list.tasks {
				if !t.Anyway {
					names = append(names, strings.TrimPrefix(t.Team+"/"+t.Name, "/"))
				}
			}
			if len(names) > 0 {
				line("%s: %s (simulated)", list.verb, strings.Join(names, ", "))
			}
		}
		if e.Others {
			line("Tasks of teams that you do not see are affected too.")
		}
	}
}

// saveFlags are the flags of each save.
type saveFlags struct {
	yes, dryRun bool
	reason      string
}

func (f *saveFlags) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "save without a question also where running tasks are interrupted")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "save nothing; print what would change")
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the versions and the activity")
}

// save reviews a change, asks where it interrupts running tasks or restarts Kueue, and saves it.
func (o *options) save(ctx context.Context, c *client, f saveFlags, method, path string, body any) error {
	query := url.Values{}
	if f.reason != "" {
		query.Set("reason", f.reason)
	}
	query.Set("dryRun", "true")
	var review savedAnswer
	if err := c.call(ctx, method, path, query, body, &review); err != nil {
		return err
	}
	if review.Unchanged {
		fmt.Fprintln(o.messages, "Saving changes nothing.")
		return nil
	}
	o.printReview(review)
	if f.dryRun {
		return nil
	}
	if !f.yes && (review.Interrupts || review.Restarts || review.Manual != "") {
		if err := o.ask("Save it?"); err != nil {
			return err
		}
	}
	query.Del("dryRun")
	var done savedAnswer
	if err := c.call(ctx, method, path, query, body, &done); err != nil {
		return err
	}
	fmt.Fprintln(o.messages, "Saved.")
	return nil
}

// allocationFlags are the values of an allocation, in the words of the form.
type allocationFlags struct {
	quota, members         []string
	pool                   string
	instances, gpus        int64
	weight, borrow         int32
	lending, within        string
	displayName, namespace string
	file                   string
}

func (f *allocationFlags) flags(c *cobra.Command, o *options) {
	fl := c.Flags()
	fl.StringArrayVar(&f.quota, "quota", nil, `quota in a pool or instance type, such as "H100: instances=2" or, as the AWS CLI writes it, "InstanceType=ml.p5.48xlarge,Accelerators=8"; several times for several`)
	fl.StringVar(&f.pool, "pool", "", "pool or instance type, with --instances or --gpus: one --quota in short")
	fl.Int64Var(&f.instances, "instances", 0, "whole instances of --pool")
	fl.Int64Var(&f.gpus, "gpus", 0, "GPUs, or Neuron devices, of --pool; vCPU and memory follow in proportion")
	fl.Int32Var(&f.weight, "weight", 0, "fair-share weight, from 0 to 100")
	fl.StringVar(&f.lending, "sharing", "", "lend-and-borrow, the default, lend or dont-lend")
	fl.Int32Var(&f.borrow, "borrow-limit", 0, "most that the team borrows, in percent of its quota")
	fl.StringVar(&f.within, "preemption", "", "within the team: lower-priority, or never")
	fl.StringArrayVar(&f.members, "member", nil, "user, or group as group:NAME; several times for several")
	fl.StringVar(&f.displayName, "display-name", "", "name on pages")
	_ = c.RegisterFlagCompletionFunc("pool", o.completePools)
	_ = c.RegisterFlagCompletionFunc("sharing", cobra.FixedCompletions([]cobra.Completion{"lend-and-borrow", "lend", "dont-lend"}, cobra.ShellCompDirectiveNoFileComp))
}

// quantities are the names of amounts in a quota, and their fields.
var quantities = map[string]string{
	"instances": "instances", "count": "instances", "accelerators": "accelerators", "gpus": "accelerators", "gpu": "accelerators",
	"vcpu": "vCPU", "cpu": "vCPU", "memory": "memory", "memoryingib": "memory",
}

// quotaRow reads a quota, such as "H100: gpus=2, memory=100" or the shorthand of the AWS CLI,
// "InstanceType=ml.p5.48xlarge,Count=2".
func quotaRow(text string) (object, error) {
	row := object{}
	pool, amounts, found := strings.Cut(text, ":")
	if found {
		row["instanceType"] = strings.TrimSpace(pool)
	} else {
		amounts = text
	}
	for part := range strings.SplitSeq(amounts, ",") {
		name, value, ok := strings.Cut(part, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		field := quantities[strings.ReplaceAll(name, "-", "")]
		switch {
		case ok && (name == "instancetype" || name == "pool"):
			row["instanceType"] = value
		case !ok || field == "":
			return nil, fmt.Errorf("--quota %q: %q is no amount; use instances, gpus, vcpu or memory (GiB), such as gpus=2", text, strings.TrimSpace(part))
		case field == "memory":
			row[field] = strings.TrimSuffix(strings.TrimSuffix(value, "Gi"), "GiB") + "Gi"
		case field == "vCPU":
			row[field] = value
		default:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("--quota %q: %s is no whole number", text, value)
			}
			row[field] = n
		}
	}
	if row["instanceType"] == nil || len(row) < 2 {
		return nil, fmt.Errorf(`--quota %q: write it as "POOL: gpus=2"`, text)
	}
	return row, nil
}

// apply writes the flags that are set into an allocation.
func (f *allocationFlags) apply(c *cobra.Command, a object) error {
	spec, changed := a.field("spec"), c.Flags().Changed
	quota := f.quota
	switch {
	case f.pool != "" && changed("instances"):
		quota = append(quota, fmt.Sprintf("%s: instances=%d", f.pool, f.instances))
	case f.pool != "" && changed("gpus"):
		quota = append(quota, fmt.Sprintf("%s: gpus=%d", f.pool, f.gpus))
	case f.pool != "" || changed("instances") || changed("gpus"):
		return errors.New("--pool goes with --instances or --gpus")
	}
	rows, _ := spec["quota"].([]any)
	for _, text := range quota {
		row, err := quotaRow(text)
		if err != nil {
			return err
		}
		same := func(other any) bool {
			of, _ := other.(map[string]any)
			return of["instanceType"] == row["instanceType"] || of["pool"] == row["instanceType"]
		}
		if i := slices.IndexFunc(rows, same); i >= 0 {
			if old, _ := rows[i].(map[string]any); old["pool"] != nil {
				row["pool"] = row["instanceType"]
				delete(row, "instanceType")
			}
			rows[i] = map[string]any(row)
		} else {
			rows = append(rows, map[string]any(row))
		}
	}
	if len(rows) > 0 {
		spec["quota"] = rows
	}
	if changed("weight") {
		spec["fairShareWeight"] = f.weight
	}
	if changed("display-name") {
		spec["displayName"] = f.displayName
	}
	sharing := map[string]string{"lend-and-borrow": "LendAndBorrow", "lend": "Lend", "dont-lend": "DontLend"}
	if changed("sharing") {
		if sharing[f.lending] == "" {
			return fmt.Errorf("--sharing %s: use lend-and-borrow, lend or dont-lend", f.lending)
		}
		spec.field("sharing")["strategy"] = sharing[f.lending]
	}
	if changed("borrow-limit") {
		spec.field("sharing")["borrowLimitPercent"] = f.borrow
	}
	within := map[string]string{"lower-priority": "LowerPriority", "never": "Never"}
	if changed("preemption") {
		if within[f.within] == "" {
			return fmt.Errorf("--preemption %s: use lower-priority or never", f.within)
		}
		spec.field("preemption")["withinTeam"] = within[f.within]
	}
	if changed("member") {
		var members []any
		for _, name := range f.members {
			kind := "User"
			if group, ok := strings.CutPrefix(name, "group:"); ok {
				kind, name = "Group", group
			}
			members = append(members, map[string]any{"kind": kind, "name": name})
		}
		spec["members"] = members
	}
	return nil
}

// allocationCommand returns the commands of allocations.
func (o *options) allocationCommand() *cobra.Command {
	group := &cobra.Command{Use: "allocation", Aliases: []string{"allocations"}, Short: "create, change, hold and delete the quota of teams", GroupID: "quota", Example: "  kuota allocation create vision --pool ml.p5.48xlarge --gpus 2 --member group:vision-team"}
	group.AddCommand(o.allocationCreate(), o.allocationEdit(), o.allocationDescribe(), o.allocationDelete())
	group.AddCommand(o.reading(read{
		use: "list", example: "kuota allocation list", about: "list compute allocations", path: "/allocations", file: "/policies",
		filters: []filter{{flag: "text", name: "q", about: "whose name contains this"}},
		rows:    func(answer any) ([]any, string) { return list(at(answer, "allocations")), "" },
		columns: []column{
			{"TEAM", "name", nil}, {"STATUS", "status", nil}, {"WEIGHT", "weight", nil}, {"SHARING", "sharing", nil}, {"QUOTA", "quota", quotas},
		},
		name: "name",
	}))
	for _, queue := range []struct {
		action, use, about string
		args               cobra.PositionalArgs
	}{
		{"hold", "hold TEAM...", "hold the queues of teams: no task starts", cobra.MinimumNArgs(1)},
		{"drain", "drain TEAM", "hold the queue of a team, and requeue its running tasks", oneTeam},
		{"resume", "resume TEAM...", "resume the queues of teams", cobra.MinimumNArgs(1)},
	} {
		var f saveFlags
		c := &cobra.Command{Use: queue.use, Short: queue.about, Example: "  kuota allocation " + queue.action + " vision", Args: queue.args, ValidArgsFunction: o.completeTeams}
		f.flags(c)
		c.RunE = func(c *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			if len(args) > 1 {
				return o.manyTeams(c.Context(), client, f, manyTeams{Action: queue.action, Teams: args})
			}
			return o.save(c.Context(), client, f, http.MethodPost, allocationPath(args[0])+"/"+queue.action, nil)
		}
		group.AddCommand(c)
	}
	var f saveFlags
	weight := &cobra.Command{Use: "weight WEIGHT TEAM...", Short: "change the fair-share weight of teams", Example: "  kuota allocation weight 20 vision", Args: cobra.MinimumNArgs(2), ValidArgsFunction: o.completeTeams}
	f.flags(weight)
	weight.RunE = func(c *cobra.Command, args []string) error {
		n, err := strconv.ParseInt(args[0], 10, 32)
		if err != nil {
			return fmt.Errorf("%s is no weight; write a whole number from 0 to 100", args[0])
		}
		client, err := o.client()
		if err != nil {
			return err
		}
		to := int32(n)
		return o.manyTeams(c.Context(), client, f, manyTeams{Action: "weight", Teams: args[1:], Weight: &to})
	}
	group.AddCommand(weight)
	return group
}

// manyTeams is an action on several teams, as the API has it.
type manyTeams struct {
	Action string   `json:"action"`
	Teams  []string `json:"teams"`
	Weight *int32   `json:"weight,omitempty"`
	Drain  bool     `json:"drain,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// manyTeams reviews an action on several teams, asks where it interrupts running tasks or deletes
// quota, runs it, and waits for its end.
func (o *options) manyTeams(ctx context.Context, c *client, f saveFlags, request manyTeams) error {
	request.Reason = f.reason
	var answer struct {
		ID    string `json:"id"`
		Teams []struct {
			Name     string `json:"name"`
			Running  int    `json:"running"`
			Waiting  int    `json:"waiting"`
			Obstacle string `json:"obstacle"`
		} `json:"teams"`
		Interrupts bool    `json:"interrupts"`
		Effect     *effect `json:"effect"`
	}
	if err := c.call(ctx, http.MethodPost, "/allocations/many", url.Values{"dryRun": {"true"}}, request, &answer); err != nil {
		return err
	}
	request.Teams = nil
	left := 0
	for _, t := range answer.Teams {
		if t.Obstacle != "" {
			left++
			fmt.Fprintf(o.messages, "%s  left out: %s\n", clean(t.Name), clean(t.Obstacle))
			continue
		}
		request.Teams = append(request.Teams, t.Name)
		fmt.Fprintf(o.messages, "%s  %d running, %d waiting\n", clean(t.Name), t.Running, t.Waiting)
	}
	o.printReview(savedAnswer{Effect: answer.Effect})
	switch {
	case len(request.Teams) == 0:
		return errors.New("this cannot be done to any of them")
	case f.dryRun:
		return nil
	case !f.yes && (answer.Interrupts || request.Action == "delete"):
		if err := o.ask(fmt.Sprintf("Change the allocations of %s (%s)?", count(len(request.Teams), "team"), request.Action)); err != nil {
			return err
		}
	}
	if err := c.call(ctx, http.MethodPost, "/allocations/many", nil, request, &answer); err != nil {
		return err
	}
	if answer.ID == "" {
		return errors.New("the teams were changed meanwhile")
	}
	if err := o.follow(ctx, c, answer.ID, "team"); err != nil || left == 0 {
		return err
	}
	return fmt.Errorf("%s left out", count(left, "team"))
}

func allocationPath(team string) string { return "/allocations/" + url.PathEscape(team) }

// quotas shows the quota of pools, such as "H100: 8 GPUs".
func quotas(value any) string {
	var parts []string
	for _, pool := range list(value) {
		parts = append(parts, fmt.Sprintf("%s: %s", clean(fmt.Sprint(at(pool, "pool"))), amounts(at(pool, "resources"))))
	}
	return strings.Join(parts, "; ")
}

func (o *options) allocationCreate() *cobra.Command {
	var f allocationFlags
	var s saveFlags
	c := &cobra.Command{Use: "create TEAM", Short: "give a team quota, a namespace, and a queue to submit to", Args: oneTeam, Example: "  kuota allocation create vision --pool ml.p5.48xlarge --gpus 2 --member group:vision-team"}
	f.flags(c, o)
	c.Flags().StringVar(&f.namespace, "namespace", "", "existing namespace of the team; default one of its own")
	s.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		a := object{"apiVersion": "kuota.dev/v1alpha1", "kind": "ComputeAllocation"}
		a.field("metadata")["name"] = args[0]
		if f.namespace != "" {
			a.field("spec")["namespace"] = f.namespace
		}
		if err := f.apply(c, a); err != nil {
			return err
		}
		return o.save(c.Context(), client, s, http.MethodPost, "/allocations", a)
	}
	return c
}

func (o *options) allocationEdit() *cobra.Command {
	var f allocationFlags
	var s saveFlags
	c := &cobra.Command{
		Use: "edit TEAM", Short: "change the quota of a team: by flags, or all of it from a file", Args: oneTeam, ValidArgsFunction: o.completeTeams,
		Example: "  kuota allocation edit vision --pool ml.p5.48xlarge --gpus 4 --reason deadline",
	}
	f.flags(c, o)
	c.Flags().StringVarP(&f.file, "filename", "f", "", "JSON of kuota allocation describe -o json, changed; - for the standard input")
	s.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		a := object{}
		if f.file != "" {
			err = o.readObject(f.file, &a)
		} else {
			err = client.call(c.Context(), http.MethodGet, allocationPath(args[0]), nil, nil, &a)
		}
		if err != nil {
			return err
		}
		if err := f.apply(c, a); err != nil {
			return err
		}
		return o.save(c.Context(), client, s, http.MethodPut, allocationPath(args[0]), a)
	}
	return c
}

// readObject reads an object of a file of JSON.
func (o *options) readObject(name string, into *object) error {
	text, err := o.manifests([]string{name})
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s is no JSON: %w", name, err)
	}
	return nil
}

// describe returns a command that prints an object.
func (o *options) describe(c *cobra.Command, path func(args []string) string) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		var found object
		if err := client.call(c.Context(), http.MethodGet, path(args), nil, nil, &found); err != nil {
			return err
		}
		if o.output == "json" {
			return o.json(found)
		}
		return o.yaml(found)
	}
	o.outputFlag(c, "yaml", "json")
	return c
}

func (o *options) allocationDescribe() *cobra.Command {
	return o.describe(&cobra.Command{Use: "describe TEAM", Short: "print a compute allocation", Args: oneTeam, ValidArgsFunction: o.completeTeams, Example: "  kuota allocation describe vision -o yaml"},
		func(args []string) string { return allocationPath(args[0]) })
}

func (o *options) allocationDelete() *cobra.Command {
	var s saveFlags
	var drain, release bool
	c := &cobra.Command{Use: "delete TEAM...", Short: "delete the quota and the queues of teams", Args: cobra.MinimumNArgs(1), ValidArgsFunction: o.completeTeams, Example: "  kuota allocation delete vision --drain"}
	c.Flags().BoolVar(&drain, "drain", false, "requeue running tasks, which otherwise prevent it")
	c.Flags().BoolVar(&release, "release", false, "keep the queues of an adopted team")
	s.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		if len(args) > 1 {
			if release {
				return errors.New("--release is for one team")
			}
			return o.manyTeams(c.Context(), client, s, manyTeams{Action: "delete", Teams: args, Drain: drain})
		}
		query := url.Values{"dryRun": {"true"}, "reason": {s.reason}, "drain": {strconv.FormatBool(drain)}, "release": {strconv.FormatBool(release)}}
		var answer struct {
			Running int
			Waiting int
			Removed []string
		}
		if err := client.call(c.Context(), http.MethodDelete, allocationPath(args[0]), query, nil, &answer); err != nil {
			return err
		}
		fmt.Fprintf(o.messages, "%s running, %d waiting. Removes %s.\n", count(answer.Running, "task"), answer.Waiting, clean(strings.Join(answer.Removed, ", ")))
		if s.dryRun {
			return nil
		}
		if !s.yes {
			if err := o.ask("Delete the allocation of " + args[0] + "?"); err != nil {
				return err
			}
		}
		query.Del("dryRun")
		return client.call(c.Context(), http.MethodDelete, allocationPath(args[0]), query, nil, nil)
	}
	return c
}

// policyCommand returns the commands of the cluster policy.
func (o *options) policyCommand() *cobra.Command {
	group := &cobra.Command{Use: "policy", Short: "print and change the cluster policy", GroupID: "quota", Example: "  kuota policy edit --class-weight training=70"}
	group.AddCommand(o.describe(&cobra.Command{Use: "describe", Short: "print the cluster policy", Args: cobra.NoArgs, Example: "  kuota policy describe"}, func([]string) string { return "/policy" }))
	var s saveFlags
	var file, prioritization, idle string
	var weights map[string]int64
	c := &cobra.Command{
		Use: "edit", Short: "change the cluster policy: by flags, or all of it from a file", Args: cobra.NoArgs,
		Example: "  kuota policy edit --class-weight training=70 --idle fair-share",
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "JSON of kuota policy describe -o json, changed; - for the standard input")
	c.Flags().StringToInt64Var(&weights, "class-weight", nil, "weight of a priority class, NAME=0 to 100; several times for several")
	c.Flags().StringVar(&prioritization, "prioritization", "", "task-ranking, or first-come")
	c.Flags().StringVar(&idle, "idle", "", "idle compute: fair-share, or first-come")
	s.flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		policy := object{}
		if file != "" {
			err = o.readObject(file, &policy)
		} else {
			err = client.call(c.Context(), http.MethodGet, "/policy", nil, nil, &policy)
		}
		if err != nil && !isNotFound(err) { // there is none yet
			return err
		}
		spec := policy.field("spec")
		for flag, to := range map[string]struct {
			value string
			in    object
			field string
			names map[string]string
		}{
			"prioritization": {prioritization, spec, "taskPrioritization", map[string]string{"task-ranking": "TaskRanking", "first-come": "FirstComeFirstServe"}},
			"idle":           {idle, spec.field("idleCompute"), "strategy", map[string]string{"fair-share": "FairShare", "first-come": "FirstComeFirstServe"}},
		} {
			if !c.Flags().Changed(flag) {
				continue
			}
			if to.names[to.value] == "" {
				return fmt.Errorf("--%s %s: use %s", flag, to.value, strings.Join(slices.Sorted(maps.Keys(to.names)), " or "))
			}
			to.in[to.field] = to.names[to.value]
		}
		classes, _ := spec["priorityClasses"].([]any)
		for name, weight := range weights {
			i := slices.IndexFunc(classes, func(class any) bool { return at(class, "name") == name })
			if i < 0 {
				classes = append(classes, map[string]any{"name": name})
				i = len(classes) - 1
			}
			if class, ok := classes[i].(map[string]any); ok {
				class["weight"] = weight
			}
		}
		if len(classes) > 0 {
			spec["priorityClasses"] = classes
		}
		return o.save(c.Context(), client, s, http.MethodPut, "/policy", policy)
	}
	group.AddCommand(c, &cobra.Command{
		Use: "try-again", Short: "apply Kueue's configuration again, after another writer changed it back", Args: cobra.NoArgs, Example: "  kuota policy try-again",
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			return client.call(c.Context(), http.MethodPost, "/policy/try-again", nil, nil, nil)
		},
	})
	return group
}
