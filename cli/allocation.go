package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// allocationFlags are the values of an allocation, in the words of the form.
type allocationFlags struct {
	quota, members         []string
	pool                   string
	instances, gpus        int64
	weight, borrow         int32
	lending, within        string
	displayName, namespace string
	department             string
	file                   string
}

func (f *allocationFlags) flags(c *cobra.Command, o *options) {
	fl := c.Flags()
	fl.StringArrayVar(&f.quota, "quota", nil, `quota in a pool or instance type, such as "H100: instances=2", "H100: gpus=2, example.com/license=3" or, as the AWS CLI writes it, "InstanceType=ml.p5.48xlarge,Accelerators=8"; several times for several`)
	fl.StringVar(&f.pool, "pool", "", "pool or instance type, with --instances or --gpus: one --quota in short")
	fl.Int64Var(&f.instances, "instances", 0, "whole instances of --pool")
	fl.Int64Var(&f.gpus, "gpus", 0, "GPUs, or Neuron devices, of --pool; vCPU and memory follow in proportion")
	fl.Int32Var(&f.weight, "weight", 0, "fair-share weight, from 0 to 100")
	fl.StringVar(&f.lending, "sharing", "", "lend-and-borrow, the default, lend or dont-lend")
	fl.Int32Var(&f.borrow, "borrow-limit", 0, "most that the team borrows, in percent of its quota")
	fl.StringVar(&f.within, "preemption", "", "within the team: lower-priority, or never")
	fl.StringArrayVar(&f.members, "member", nil, "user, or group as group:NAME; several times for several")
	fl.StringVar(&f.displayName, "display-name", "", "name on pages")
	fl.StringVar(&f.department, "department", "", "department that the team is in; empty for none")
	_ = c.RegisterFlagCompletionFunc("pool", o.completePools)
	_ = c.RegisterFlagCompletionFunc("department", o.completeDepartments)
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
		resource, value, ok := strings.Cut(part, "=")
		resource, value = strings.TrimSpace(resource), strings.TrimSpace(value)
		name := strings.ToLower(resource)
		field := quantities[strings.ReplaceAll(name, "-", "")]
		switch {
		case ok && (name == "instancetype" || name == "pool"):
			row["instanceType"] = value
		case ok && field == "" && strings.ContainsAny(name, "/-"):
			others, _ := row["resources"].([]any)
			row["resources"] = append(others, map[string]any{"name": resource, "quantity": value})
		case !ok || field == "":
			return nil, fmt.Errorf("--quota %q: %q is no amount; use instances, gpus, vcpu, memory (GiB) or a resource, such as gpus=2 or example.com/license=3", text, strings.TrimSpace(part))
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
		for _, member := range membersOf(f.members) {
			members = append(members, map[string]any(member))
		}
		spec["members"] = members
	}
	if changed("department") {
		spec["department"] = f.department
		if f.department == "" {
			delete(spec, "department")
		}
	}
	return nil
}

// membersOf returns the members that flags name.
func membersOf(names []string) (members []object) {
	for _, name := range names {
		kind := "User"
		if group, ok := strings.CutPrefix(name, "group:"); ok {
			kind, name = "Group", group
		}
		members = append(members, object{"kind": kind, "name": name})
	}
	return members
}

// allocationCommand returns the commands of allocations.
func (o *options) allocationCommand() *cobra.Command {
	group := &cobra.Command{Use: "allocation", Aliases: []string{"allocations"}, Short: "create, change, hold and delete the quota of teams", GroupID: "quota", Example: "  kuota allocation create vision --pool ml.p5.48xlarge --gpus 2 --member group:vision-team"}
	group.AddCommand(o.allocationCreate(), o.allocationEdit(), o.allocationDescribe(), o.allocationDelete())
	group.AddCommand(o.reading(read{
		use: "list", example: "kuota allocation list", about: "list compute allocations", path: "/allocations", file: "/policies",
		filters: []filter{{flag: "text", name: "q", about: "whose name contains this"}, {flag: "department", name: "department", about: "of the teams in this department and below it"}},
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
	group.AddCommand(weight, o.allocationMove())
	return group
}

// allocationMove returns the command that moves teams to a department.
func (o *options) allocationMove() *cobra.Command {
	var f saveFlags
	department := ""
	c := &cobra.Command{Use: "move TEAM... --department NAME", Short: "move teams to a department, with their quota", Example: "  kuota allocation move vision speech --department research", Args: cobra.MinimumNArgs(1), ValidArgsFunction: o.completeTeams}
	f.flags(c)
	c.Flags().StringVar(&department, "department", "", "department that the teams are in afterwards; empty for none")
	_ = c.MarkFlagRequired("department")
	_ = c.RegisterFlagCompletionFunc("department", o.completeDepartments)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		return o.manyTeams(c.Context(), client, f, manyTeams{Action: "move", Teams: args, Department: &department})
	}
	return c
}

// manyTeams is an action on several teams, as the API has it.
type manyTeams struct {
	Action     string   `json:"action"`
	Teams      []string `json:"teams"`
	Weight     *int32   `json:"weight,omitempty"`
	Department *string  `json:"department,omitempty"`
	Drain      bool     `json:"drain,omitempty"`
	Reason     string   `json:"reason,omitempty"`
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
