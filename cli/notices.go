package cli

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// notices is which notices a person gets, as the API has it.
type notices struct {
	On        []string   `json:"on"`
	To        []string   `json:"to"`
	Lost      []string   `json:"lost"`
	Email     string     `json:"email"`
	Until     *time.Time `json:"until"`
	Receivers []struct {
		Name    string `json:"name"`
		Type    string `json:"type"`
		Team    string `json:"team"`
		Problem string `json:"problem"`
	} `json:"receivers"`
}

// noticesCommand returns the command that shows and sets notices.
func (o *options) noticesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "notices", GroupID: "tasks", Short: "show or choose when you are notified of your own tasks, and how", Args: cobra.NoArgs,
		Example: "  kuota notices",
	}
	var on, to []string
	var off bool
	events := []string{"start", "end", "fail", "preempt"}
	c.Flags().StringSliceVar(&on, "on", nil, "events: "+strings.Join(events, ", "))
	c.Flags().StringSliceVar(&to, "to", nil, "names of receivers, of those that kuota notices lists")
	c.Flags().BoolVar(&off, "off", false, "end all notices")
	c.MarkFlagsMutuallyExclusive("off", "on")
	c.MarkFlagsMutuallyExclusive("off", "to")
	_ = c.RegisterFlagCompletionFunc("on", cobra.FixedCompletions(events, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		var now notices
		if err := client.call(c.Context(), http.MethodGet, "/notices", nil, nil, &now); err != nil {
			return err
		}
		setsOn, setsTo := c.Flags().Changed("on"), c.Flags().Changed("to")
		if off || setsOn || setsTo {
			want := map[string][]string{"on": now.On, "to": slices.DeleteFunc(now.To, func(name string) bool { return slices.Contains(now.Lost, name) })}
			switch {
			case off:
				want = map[string][]string{"on": {}, "to": {}}
			case setsOn && len(on) == 0, setsTo && len(to) == 0:
				return errors.New("name at least one, or use --off")
			}
			if setsOn {
				want["on"] = on
			}
			if setsTo {
				want["to"] = to
			}
			if len(want["on"]) == 0 && !off {
				return errors.New("choose the events by --on " + strings.Join(events, ","))
			}
			now = notices{}
			if err := client.call(c.Context(), http.MethodPut, "/notices", nil, want, &now); err != nil {
				return err
			}
		}
		o.printNotices(now)
		return nil
	}
	return c
}

func (o *options) printNotices(n notices) {
	if len(n.On) == 0 {
		fmt.Fprintln(o.out, "You get no notices.")
	} else {
		fmt.Fprintf(o.out, "You get notices on %s by %s.\n", strings.Join(n.On, ", "), strings.Join(n.To, ", "))
	}
	if len(n.Lost) > 0 {
		fmt.Fprintf(o.out, "Not by %s any more: it is not available to you.\n", strings.Join(n.Lost, ", "))
	}
	if n.Until != nil {
		fmt.Fprintf(o.messages, "until %s, unless you open a page of the console before\n", n.Until.Format(time.DateOnly))
	}
	if len(n.Receivers) == 0 {
		fmt.Fprintln(o.out, "No receiver is allowed. An admin can let a receiver of the cluster policy get notices.")
	}
	for _, r := range n.Receivers {
		text := r.Type
		if r.Type == "Email" && r.Problem == "" {
			text = "e-mail to " + n.Email
		}
		if r.Team != "" {
			text += ", tasks of team " + r.Team
		}
		if r.Problem != "" {
			text += ": " + r.Problem
		}
		fmt.Fprintf(o.out, "  %s: %s\n", r.Name, text)
	}
}
