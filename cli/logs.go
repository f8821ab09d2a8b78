package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// pod is a pod of a task.
type pod struct {
	Name       string    `json:"name"`
	Node       string    `json:"node"`
	Phase      string    `json:"phase"`
	Problem    string    `json:"problem"`
	Containers []string  `json:"containers"`
	Created    time.Time `json:"created"`
	Index      *int32    `json:"index,omitempty"`
	ExitCode   *int32    `json:"exitCode,omitempty"`
	Trouble    string    `json:"trouble,omitempty"`
}

// logFlags are what logs to read.
type logFlags struct {
	follow, all, previous, timestamps bool
	pod, container                    string
	index                             *int32
}

// logsCommand returns the command that prints logs.
func (o *options) logsCommand() *cobra.Command {
	var f logFlags
	c := &cobra.Command{
		Use: "logs NAME", Short: "print the log of a task", GroupID: "tasks", Args: oneTask, ValidArgsFunction: o.completeTasks,
		Example: "  kuota logs train -f --all",
	}
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for more lines until the containers end")
	c.Flags().BoolVar(&f.all, "all", false, "of all pods, each line with the name of its pod")
	c.Flags().BoolVarP(&f.previous, "previous", "p", false, "of the run before the last restart")
	c.Flags().BoolVar(&f.timestamps, "timestamps", false, "with the time of each line")
	c.Flags().StringVar(&f.pod, "pod", "", "of this pod; default the first")
	index := c.Flags().Int32("index", 0, "of this index of an array")
	c.Flags().StringVarP(&f.container, "container", "c", "", "of this container; default the first")
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := o.client()
		if err != nil {
			return err
		}
		t, err := o.one(c.Context(), client, args[0])
		if err != nil {
			return err
		}
		f.index = ifChanged(c, "index", index)
		return o.logs(c.Context(), client, t, f)
	}
	return c
}

// podColumns are the columns of pods.
var podColumns = []column{{"POD", "name", nil}, {"INDEX", "index", nil}, {"STATUS", "phase", nil}, {"EXIT CODE", "exitCode", nil}, {"NODE", "node", nil}, {"PROBLEM", "trouble", nil}}

// podsCommand returns the command that lists the pods of a task.
func (o *options) podsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "pods NAME", Short: "list the pods of a task, with their indexes, nodes and exit codes", GroupID: "tasks", Args: oneTask, ValidArgsFunction: o.completeTasks,
		Example: "  kuota pods train",
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
		var answer any
		if err := client.call(c.Context(), http.MethodGet, t.path()+"/pods", uidOf(t), nil, &answer); err != nil {
			return err
		}
		if o.output == "json" {
			return o.json(answer)
		}
		return table(o.out, podColumns, list(at(answer, "pods")))
	}
	return c
}

// pods returns the pods of a task.
func (c *client) pods(ctx context.Context, t task) ([]pod, error) {
	var answer struct{ Pods []pod }
	err := c.call(ctx, http.MethodGet, t.path()+"/pods", uidOf(t), nil, &answer)
	return answer.Pods, err
}

func uidOf(t task) url.Values {
	if t.UID == "" {
		return nil
	}
	return url.Values{"uid": {t.UID}}
}

// logs prints the logs of a task.
func (o *options) logs(ctx context.Context, c *client, t task, f logFlags) error {
	pods, err := c.pods(ctx, t)
	switch {
	case err != nil:
		return err
	case len(pods) == 0:
		return fmt.Errorf("%s has no pods now, so there is no log", t.Name)
	case f.index != nil:
		if pods = slices.DeleteFunc(pods, func(p pod) bool { return p.Index == nil || *p.Index != *f.index }); len(pods) == 0 {
			return fmt.Errorf("index %d of %s has no pod now, so there is no log", *f.index, t.Name)
		}
		pods = []pod{slices.MaxFunc(pods, func(a, b pod) int { return a.Created.Compare(b.Created) })} // of the latest try
	case f.pod != "":
		pods = []pod{{Name: f.pod}}
	case !f.all:
		pods = pods[:1]
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	failures := make([]error, len(pods))
	for i, p := range pods {
		prefix := ""
		if f.all {
			prefix = clean(p.Name) + " "
		}
		reading.Go(func() {
			failures[i] = c.log(ctx, t, p.Name, f, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(o.out, prefix+cleanLog(line))
			})
		})
	}
	reading.Wait()
	return errors.Join(failures...)
}

// retries bounds how often a log is opened again that gives no new line.
const retries = 5

// log reads one log by lines. A log that is followed is opened again where the connection or the token
// ends, and goes on after the last line.
func (c *client) log(ctx context.Context, t task, name string, f logFlags, print func(line string)) error {
	query := url.Values{"pod": {name}, "container": {f.container}}
	for flag, on := range map[string]bool{"previous": f.previous, "timestamps": f.timestamps || f.follow, "follow": f.follow} {
		if on {
			query.Set(flag, "true")
		}
	}
	if t.UID != "" {
		query.Set("uid", t.UID)
	}
	last, tries := "", 0 // the time of the last line
	for {
		printed := last // before it was opened again
		more, err := c.logOnce(ctx, t, query, func(line string) {
			at, text, timed := strings.Cut(line, " ")
			switch {
			case !f.follow || !timed:
				print(line)
			case at <= printed:
			default:
				if last, tries = at, 0; !f.timestamps {
					line = text
				}
				print(line)
			}
		})
		switch {
		case err == nil || !f.follow || !more || ctx.Err() != nil:
			return err
		case errors.Is(err, errCut) && c.hasEnded(ctx, t, name): // a proxy removes trailers
			if tries > 0 {
				return nil
			}
		case tries == retries:
			return err
		}
		tries++
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// hasEnded reports whether a pod has ended, or was deleted.
func (c *client) hasEnded(ctx context.Context, t task, name string) bool {
	pods, err := c.pods(ctx, t)
	i := slices.IndexFunc(pods, func(p pod) bool { return p.Name == name })
	return isNotFound(err) || err == nil && (i < 0 || pods[i].Phase == "Succeeded" || pods[i].Phase == "Failed")
}

// errCut is that a log may go on.
var errCut = errors.New("the log was cut off")

// logOnce reads a log until its connection ends. more reports whether it may go on.
func (c *client) logOnce(ctx context.Context, t task, query url.Values, print func(line string)) (more bool, err error) {
	endless := *c
	endless.http = &http.Client{Transport: c.http.Transport, CheckRedirect: noRedirects}
	response, err := endless.send(ctx, http.MethodGet, api+t.path()+"/logs", query, nil)
	if err != nil {
		var p *problem
		return !errors.As(err, &p) || p.status == http.StatusUnauthorized || p.status >= http.StatusInternalServerError, err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			print(strings.TrimRight(line, "\r\n"))
		}
		if err == nil {
			continue
		}
		if response.Trailer.Get("Kuota-Log") == "ended" || query.Get("follow") == "" {
			return false, nil
		}
		return true, errCut
	}
}

// cleanLog is clean, but keeps tabs: a log is what a container wrote.
func cleanLog(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = clean(parts[i])
	}
	return strings.Join(parts, "\t")
}
