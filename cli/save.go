package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
