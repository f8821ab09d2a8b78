package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Applier saves objects in the console that the flags of a command name, as its person: each with the
// review that kuota allocation and kuota policy print, and their question.
type Applier struct {
	flags saveFlags
	team  string
	o     *options
	c     *client
}

// Flags adds the flags of saves to a command.
func (a *Applier) Flags(c *cobra.Command) {
	a.flags.flags(c)
	c.Flags().StringVar(&a.team, "team", os.Getenv("KUOTA_TEAM"), "team of tasks; default $KUOTA_TEAM, else the one that their queue or namespace names, else your only one")
	_ = c.RegisterFlagCompletionFunc("team", func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return optionsOf(c).completeTeams(c, args, typed)
	})
}

// Connect reads the flags of a command below the one that New returns. It sends no request.
func (a *Applier) Connect(c *cobra.Command) (err error) {
	a.o = optionsOf(c)
	a.c, err = a.o.client()
	return err
}

// optionsOf returns the options of a command below the one that New returns.
func optionsOf(c *cobra.Command) *options {
	o := &options{output: "text", out: c.OutOrStdout(), messages: c.ErrOrStderr(), input: c.InOrStdin()}
	for name, value := range map[string]*string{"server": &o.server, "token": &o.token, "token-file": &o.tokenFile, "ca-file": &o.caFile} {
		*value, _ = c.Flags().GetString(name)
	}
	return o
}

// Allocation creates or changes the allocation of a team. merge returns the allocation that is saved,
// for the JSON of the one that exists, which is nil if there is none.
func (a *Applier) Allocation(ctx context.Context, team string, merge func(found []byte) (any, error)) error {
	return a.save(ctx, allocationPath(team), http.MethodPost, "/allocations", merge)
}

// Policy is Allocation for the cluster policy.
func (a *Applier) Policy(ctx context.Context, merge func(found []byte) (any, error)) error {
	return a.save(ctx, "/policy", http.MethodPut, "/policy", merge)
}

// save saves an object of a path, or creates it by a method and a path.
func (a *Applier) save(ctx context.Context, path, method, create string, merge func(found []byte) (any, error)) error {
	found, err := a.c.get(ctx, api+path, nil)
	switch {
	case isNotFound(err), isForbidden(err): // who sees no allocation may create one; if not, the save says so
		found, path = nil, create
	case err != nil:
		return err
	default:
		method = http.MethodPut
	}
	wanted, err := merge(found)
	if err != nil {
		return err
	}
	return a.o.save(ctx, a.c, a.flags, method, path, wanted)
}

// Task submits a task to the team of the flags or, without one, to the one that its queue or its
// namespace names.
func (a *Applier) Task(ctx context.Context, queue, namespace, manifest string) error {
	team := a.team
	if name, named := strings.CutPrefix(cmp.Or(namespace, namespaceOf(queue)), namespacePrefix); named && team == "" {
		team = name
	}
	team, err := a.c.team(ctx, team)
	if err != nil {
		return err
	}
	request := submitRequest{Manifest: manifest}
	reviewed, err := a.c.submit(ctx, team, true, request)
	if err != nil {
		return err
	}
	preempts := false
	for _, s := range reviewed {
		for _, changed := range s.Changed {
			fmt.Fprintf(a.o.messages, "%s: %s\n", clean(changed.Field), clean(changed.Message))
		}
		if v := s.Verdict; v != nil {
			preempts = preempts || len(v.Preempted) > 0
			text := strings.TrimSpace(v.Headline + " " + v.Text)
			if len(v.Preempted) > 0 {
				text += " It would preempt " + strings.Join(v.Preempted, ", ") + "."
			}
			fmt.Fprintf(a.o.messages, "%s: %s\n", clean(s.Name), clean(text))
		}
	}
	switch {
	case a.flags.dryRun:
		return nil
	case preempts && !a.flags.yes:
		if err := a.o.ask("Submit it?"); err != nil {
			return err
		}
	}
	done, err := a.c.submit(ctx, team, false, request)
	if err != nil {
		return err
	}
	for _, s := range done {
		fmt.Fprintln(a.o.out, clean(s.task().String()))
	}
	return nil
}

// isForbidden reports whether the console answered that the user may not do it.
func isForbidden(err error) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && p.status == http.StatusForbidden
}
