package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// computing is how long why waits for a simulation.
const computing = 30 * time.Second

// explanation is what of why.json is printed.
type explanation struct {
	Status, Position string
	Why              *struct {
		Headline, Text, ChangesTitle string
		Steps                        []struct {
			Title, Text string
			Tasks       []named
		}
		Changes []struct {
			Title, Text, After string
			Tasks              []named
			Verified           bool
		}
		Checked *struct{ State, Text string }
	}
	Estimate *struct{ State, Text, From, To, In string }
}

type named struct{ Name string }

// names returns the names of tasks.
func names(tasks []named) string {
	all := make([]string, len(tasks))
	for i, t := range tasks {
		all[i] = t.Name
	}
	return strings.Join(all, ", ")
}

// why returns the command that explains a task.
func (o *options) why() *cobra.Command {
	c := &cobra.Command{
		Use: "why NAME", GroupID: "tasks", Short: "explain why a task waits, what would start it, and when it probably starts; or how far it is",
		Example: "  kuota why train", Args: oneTask, ValidArgsFunction: o.completeTasks,
	}
	o.outputFlag(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		t, err := o.one(c.Context(), client, args[0])
		if err != nil {
			return err
		}
		for began := time.Now(); ; time.Sleep(time.Second) {
			body, err := client.get(c.Context(), api+t.path()+"/why", uidOf(t))
			if err != nil {
				return err
			}
			var e explanation
			if err := json.Unmarshal(body, &e); err != nil {
				return fmt.Errorf("the answer is no JSON; is this the address of a console? %w", err)
			}
			if e.Why != nil && e.Why.Checked != nil && e.Why.Checked.State == "computing" && time.Since(began) < computing && c.Context().Err() == nil {
				continue
			}
			if o.output == "json" {
				_, err := o.out.Write(body)
				return err
			}
			e.print(o.out)
			if e.Why == nil { // a console that is older has no progress
				if body, err := client.get(c.Context(), api+t.path(), uidOf(t)); err == nil {
					printProgress(o.out, body)
				}
			}
			return nil
		}
	}
	return c
}

// printProgress prints how far a training is, if its task reports that.
func printProgress(out io.Writer, body []byte) {
	var t struct {
		Progress *struct {
			At, Checkpoint                            string
			Step                                      int64
			SamplesPerSecond, Loss, CheckpointSeconds *float64
		}
	}
	if json.Unmarshal(body, &t) != nil || t.Progress == nil {
		return
	}
	p, parts := t.Progress, []string{fmt.Sprintf("step %d", t.Progress.Step)}
	if p.SamplesPerSecond != nil {
		parts = append(parts, fmt.Sprintf("%.4g samples/s", *p.SamplesPerSecond))
	}
	if p.Loss != nil {
		parts = append(parts, fmt.Sprintf("loss %.4g", *p.Loss))
	}
	if p.Checkpoint != "" {
		parts = append(parts, "last checkpoint "+p.Checkpoint)
		if p.CheckpointSeconds != nil {
			parts = append(parts, fmt.Sprintf("which took %.2g s", *p.CheckpointSeconds))
		}
	}
	fmt.Fprintln(out, clean("Progress at "+p.At+": "+strings.Join(parts, ", ")))
}

// print prints an explanation in the words of the page.
func (e *explanation) print(out io.Writer) {
	line := func(indent, text string) {
		if text = strings.TrimSpace(clean(text)); text != "" {
			fmt.Fprintln(out, indent+text)
		}
	}
	status := e.Status
	if e.Position != "" {
		status += ", " + e.Position
	}
	line("", status)
	if e.Why == nil {
		line("", "There is nothing to explain.")
	} else {
		line("", e.Why.Headline)
		line("", e.Why.Text)
		for _, s := range e.Why.Steps {
			line("  ", s.Title+": "+s.Text+" "+names(s.Tasks))
		}
		if len(e.Why.Changes) > 0 {
			line("", e.Why.ChangesTitle)
		}
		for _, change := range e.Why.Changes {
			text := strings.Join(strings.Fields(strings.Join([]string{change.Title, change.Text, names(change.Tasks), change.After}, " ")), " ")
			if change.Verified {
				text += " (simulated)"
			}
			line("  ", text)
		}
		if e.Why.Checked != nil {
			line("", e.Why.Checked.Text)
		}
	}
	if e.Estimate != nil && e.Estimate.Text != "" {
		line("", e.Estimate.Text)
	}
}
