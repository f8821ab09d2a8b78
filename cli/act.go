package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// task is a task as the API names it.
type task struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Status    string `json:"status"`
	Obstacle  string `json:"obstacle,omitempty"`
}

// String returns how commands name a task.
func (t task) String() string {
	return t.Namespace + "/" + strings.ToLower(t.Kind) + "/" + t.Name
}

// path returns the path of a task in the API.
func (t task) path() string {
	return "/tasks/" + url.PathEscape(t.Namespace) + "/" + url.PathEscape(strings.ToLower(t.Kind)) + "/" + url.PathEscape(t.Name)
}

// selector selects tasks as flags do.
type selector struct {
	Teams    []string `json:"teams,omitempty"`
	Statuses []string `json:"statuses,omitempty"`
	Classes  []string `json:"classes,omitempty"`
	Kinds    []string `json:"kinds,omitempty"`
	Pools    []string `json:"pools,omitempty"`
	Mine     bool     `json:"mine,omitempty"`
	Text     string   `json:"text,omitempty"`
	Names    []string `json:"names,omitempty"`
	Finished bool     `json:"finished,omitempty"`
}

// flags adds the flags of a selector.
func (s *selector) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&s.Teams, "team", nil, "of this team; several times for several")
	f.StringArrayVar(&s.Statuses, "status", nil, "in this status, such as Pending or Running")
	f.StringArrayVar(&s.Classes, "class", nil, "of this priority class")
	f.StringArrayVar(&s.Kinds, "kind", nil, "of this kind, such as Job")
	f.StringArrayVar(&s.Pools, "pool", nil, "in this pool")
	f.BoolVar(&s.Mine, "mine", false, "that you submitted")
	f.StringVarP(&s.Text, "selector", "l", "", "with this label, such as sweep=lr")
}

// given reports whether a selector selects by more than names.
func (s *selector) given() bool {
	return len(s.Teams)+len(s.Statuses)+len(s.Classes)+len(s.Kinds)+len(s.Pools) > 0 || s.Mine || s.Text != ""
}

// isPattern reports whether a name selects several tasks.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// many is an action on many tasks, as the API has it.
type many struct {
	Action   string    `json:"action"`
	Class    string    `json:"class,omitempty"`
	UIDs     []string  `json:"uids,omitempty"`
	Selector *selector `json:"selector,omitempty"`
}

// manyAnswer lists the tasks of an action.
type manyAnswer struct {
	ID    string `json:"id"`
	Tasks []task `json:"tasks"`
	More  int    `json:"more"`
}

// selectTasks returns the tasks that arguments and flags name. Each argument is a name, a pattern,
// or NAMESPACE/KIND/NAME.
func (o *options) selectTasks(ctx context.Context, c *client, action, class string, s selector, args []string) (found manyAnswer, err error) {
	addresses := map[string]bool{} // NAMESPACE/kind/NAME
	s.Names = nil
	for _, arg := range args {
		arg = strings.Trim(arg, "/")
		parts := strings.Split(strings.TrimPrefix(arg, "tasks/"), "/")
		switch len(parts) {
		case 1:
		case 3:
			addresses[parts[0]+"/"+strings.ToLower(parts[1])+"/"+parts[2]] = true
		default:
			return found, fmt.Errorf("%q is no task; write a name, a pattern such as 'lr-*', or NAMESPACE/KIND/NAME", arg)
		}
		if _, err := path.Match(parts[len(parts)-1], ""); err != nil {
			return found, fmt.Errorf("%q is no pattern of names", arg)
		}
		s.Names = append(s.Names, parts[len(parts)-1])
	}
	err = c.call(ctx, http.MethodPost, "/tasks/many", url.Values{"dryRun": {"true"}}, many{Action: action, Class: class, Selector: &s}, &found)
	if err != nil {
		return found, err
	}
	matches := func(t task, arg string) bool {
		if strings.Contains(arg, "/") {
			return strings.TrimPrefix(strings.Trim(arg, "/"), "tasks/") == t.String() || addresses[t.String()] && strings.HasSuffix(arg, "/"+t.Name)
		}
		matched, _ := path.Match(arg, t.Name)
		return matched
	}
	var kept []task
	byArg := make([][]task, len(args))
	for _, t := range found.Tasks {
		keep := len(args) == 0
		for i, arg := range args {
			if matches(t, arg) {
				keep, byArg[i] = true, append(byArg[i], t)
			}
		}
		if keep {
			kept = append(kept, t)
		}
	}
	found.Tasks = kept
	for i, arg := range args {
		switch list := byArg[i]; {
		case len(list) == 0:
			if action == "delete" && !s.Finished && len(s.Statuses) == 0 { // finished tasks can be deleted too
				s.Finished = true
				return o.selectTasks(ctx, c, action, class, s, args)
			}
			return found, &notFound{"there is no such task: " + arg, !isPattern(arg)}
		case len(list) > 1 && !isPattern(arg):
			return found, fmt.Errorf("%s is the name of %d tasks: %s and %s; write NAMESPACE/KIND/NAME, or add --team", arg, len(list), list[0], list[1])
		}
	}
	return found, nil
}

// notFound is the error of a task that is not in the list. One that is named may have been submitted a
// moment ago.
type notFound struct {
	message string
	named   bool
}

func (e *notFound) Error() string { return e.message }

// awaited looks for what a person names, for as long as a submitted task takes to come into the list:
// until Kueue has made its Workload.
func awaited[T any](ctx context.Context, look func() (T, error)) (T, error) {
	for start := time.Now(); ; {
		found, err := look()
		var missing *notFound
		if !errors.As(err, &missing) || !missing.named || time.Since(start) > 3*time.Second || sleep(ctx, 500*time.Millisecond) != nil {
			return found, err
		}
	}
}

// one returns the task that an argument names.
func (o *options) one(ctx context.Context, c *client, arg string) (task, error) {
	return awaited(ctx, func() (task, error) { return o.lookUp(ctx, c, arg) })
}

// lookUp is one without waiting.
func (o *options) lookUp(ctx context.Context, c *client, arg string) (task, error) {
	if parts := strings.Split(strings.TrimPrefix(strings.Trim(arg, "/"), "tasks/"), "/"); len(parts) == 3 {
		return task{Namespace: parts[0], Kind: parts[1], Name: parts[2]}, nil
	}
	if isPattern(arg) {
		return task{}, fmt.Errorf("%q is a pattern; name one task", arg)
	}
	var found []task
	for _, tab := range []string{"active", "finished"} {
		var answer struct{ Tasks []task }
		if err := c.call(ctx, http.MethodGet, "/tasks", url.Values{"q": {arg}, "tab": {tab}}, nil, &answer); err != nil {
			return task{}, err
		}
		for _, t := range answer.Tasks {
			if t.Name == arg {
				found = append(found, t)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch len(found) {
	case 0:
		return task{}, &notFound{fmt.Sprintf("there is no task %s that you see. Write NAMESPACE/KIND/NAME if it is one of many whose names contain this", clean(arg)), true}
	case 1:
		return found[0], nil
	}
	return task{}, fmt.Errorf("%s is the name of %d tasks: %s and %s; write NAMESPACE/KIND/NAME", clean(arg), len(found), found[0], found[1])
}

// actions that run on many tasks: their names, and what they do.
var manyActions = []struct{ name, about, verb, example string }{
	{"stop", "stop tasks: they lose their quota and stay stopped until they are resumed", "Stop", "kuota stop 'lr-*' --team vision"},
	{"resume", "resume stopped tasks: they wait in their queues again", "Resume", "kuota resume train"},
	{"delete", "delete tasks with their pods", "Delete", "kuota delete --mine --status Failed --yes"},
}

// actCommands returns the commands that act on many tasks.
func (o *options) actCommands() (list []*cobra.Command) {
	for _, a := range manyActions {
		var s selector
		var run manyRun
		c := &cobra.Command{Use: a.name + " NAME...", Short: a.about, GroupID: "tasks", Example: "  " + a.example, ValidArgsFunction: o.completeTasks}
		s.flags(c)
		run.flags(c)
		if a.name == "delete" {
			c.Flags().BoolVar(&s.Finished, "finished", false, "finished tasks in place of active ones")
		}
		c.RunE = func(c *cobra.Command, args []string) error {
			return o.actOnMany(c.Context(), run, a.name, a.verb, "", s, args)
		}
		list = append(list, c)
	}
	return list
}

// manyRun is how an action on many tasks runs.
type manyRun struct{ yes, dryRun bool }

func (r *manyRun) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "only list the tasks")
}

// actOnMany lists what an action is about, asks, runs it, and waits for its end.
func (o *options) actOnMany(ctx context.Context, run manyRun, action, verb, class string, s selector, args []string) error {
	if len(args) == 0 && !s.given() {
		return errors.New("name tasks, or select them by flags such as --team or --mine")
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	found, err := awaited(ctx, func() (manyAnswer, error) { return o.selectTasks(ctx, client, action, class, s, args) })
	if err != nil {
		return err
	}
	var uids []string
	left := 0
	for _, t := range found.Tasks {
		line := fmt.Sprintf("%s  %s", clean(t.String()), clean(t.Status))
		if t.Obstacle != "" {
			line += "  left out: " + clean(t.Obstacle)
			left++
		} else {
			uids = append(uids, t.UID)
		}
		if len(args) != 1 || isPattern(args[0]) || t.Obstacle != "" || run.dryRun {
			fmt.Fprintln(o.messages, line)
		}
	}
	switch {
	case len(found.Tasks) == 0:
		return errors.New("no task matches")
	case len(uids) == 0 && left == 1:
		return errors.New(clean(found.Tasks[0].Obstacle))
	case len(uids) == 0:
		return errors.New("this cannot be done to any of them")
	case found.More > 0:
		fmt.Fprintf(o.messages, "These are the first %d; %d more match.\n", len(uids), found.More)
	}
	if run.dryRun {
		return nil
	}
	what := fmt.Sprintf("%s %s", verb, count(len(uids), "task"))
	if !run.yes {
		if err := o.ask(what + "?"); err != nil {
			return err
		}
	}
	return o.runMany(ctx, client, many{Action: action, Class: class, UIDs: uids})
}

// runMany runs an action, and waits for its end.
func (o *options) runMany(ctx context.Context, c *client, request many) error {
	var started manyAnswer
	if err := c.call(ctx, http.MethodPost, "/tasks/many", nil, request, &started); err != nil {
		return err
	}
	if started.ID == "" {
		return errors.New("the tasks were deleted meanwhile")
	}
	return o.follow(ctx, c, started.ID, "task")
}

// follow waits for the end of an action on many objects.
func (o *options) follow(ctx context.Context, c *client, id, noun string) error {
	for {
		var run struct {
			Ended bool `json:"ended"`
			Items []struct {
				Name    string `json:"name"`
				Done    bool   `json:"done"`
				Problem string `json:"problem"`
			} `json:"items"`
		}
		if err := c.call(ctx, http.MethodGet, "/bulk/"+id, nil, nil, &run); err != nil {
			return err
		}
		if !run.Ended {
			if err := sleep(ctx, 300*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		failed := 0
		for _, item := range run.Items {
			if !item.Done {
				failed++
				fmt.Fprintf(o.messages, "%s: %s\n", clean(item.Name), clean(item.Problem))
			}
		}
		if failed > 0 {
			return fmt.Errorf("%d of %s not done", failed, count(len(run.Items), noun))
		}
		fmt.Fprintf(o.messages, "Done: %s.\n", count(len(run.Items), noun))
		return nil
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ask asks a question on the terminal. Its error is that the answer is not yes.
func (o *options) ask(question string) error {
	fmt.Fprintf(o.messages, "%s [y/N] ", cleanLines(question))
	line, err := bufio.NewReader(o.in()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil && line == "" {
		fmt.Fprintln(o.messages)
		return errors.New("nothing was changed: there was no answer. Add --yes to go on without a question")
	}
	return errors.New("nothing was changed")
}

// in returns the input of answers.
func (o *options) in() io.Reader {
	if o.input != nil {
		return o.input
	}
	return os.Stdin
}

// actionRequest is the body of an action on one task.
type actionRequest struct {
	UID      string `json:"uid,omitempty"`
	Class    string `json:"class,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Sizes    *sizes `json:"sizes,omitempty"`
	Name     string `json:"name,omitempty"`
	Index    *int32 `json:"index,omitempty"`
}

type sizes struct {
	Min    int32   `json:"min"`
	Max    int32   `json:"max"`
	Step   int32   `json:"step,omitempty"`
	Values []int32 `json:"values,omitempty"`
	// Times are seconds by the name of the field of elasticPolicy.
	Times map[string]int32 `json:"times,omitempty"`

	Growth         string `json:"growth,omitempty"`
	MaxUnscheduled *int32 `json:"maxUnscheduled,omitempty"`

	ScaleConfig *map[string]map[string]string `json:"scaleConfig,omitempty"` // nil: they stay
}

// sizeTimes are the times of an elastic task, by flag.
var sizeTimes = []struct{ flag, field, about string }{
	{"grace", "gracefulShutdownTimeoutInSeconds", "seconds that pods have to save before they are killed; of a running task, pods that start from now on"},
	{"idle", "scalingTimeoutInSeconds", "seconds for which compute must have been idle before it grows"},
	{"faulty", "faultyScaleDownTimeoutInSeconds", "seconds after which growth is given up whose pods fail or find no node"},
	{"rest", "minStablePeriodSeconds", "seconds that it does not grow after growth was taken back"},
	{"longest-rest", "backoffMaxSeconds", "most seconds of that, which double each time"},
	{"node-timeout", "provisionTimeoutInSeconds", "seconds after which growth is withdrawn that waits for nodes"},
}

// timeFlags adds the flags of sizeTimes.
func timeFlags(c *cobra.Command) {
	for _, t := range sizeTimes {
		c.Flags().Int32(t.flag, 0, t.about)
	}
}

// timesOf returns the times that are set, by field; nil for none.
func timesOf(c *cobra.Command) (times map[string]int32) {
	for _, t := range sizeTimes {
		if c.Flags().Changed(t.flag) {
			if times == nil {
				times = map[string]int32{}
			}
			times[t.field], _ = c.Flags().GetInt32(t.flag)
		}
	}
	return times
}

// onOne runs an action on the task that an argument names.
func (o *options) onOne(ctx context.Context, arg, action string, request actionRequest) (task, error) {
	client, err := o.client()
	if err != nil {
		return task{}, err
	}
	t, err := o.one(ctx, client, arg)
	if err != nil {
		return t, err
	}
	request.UID = t.UID
	var answer struct{ Task task }
	err = client.call(ctx, http.MethodPost, t.path()+"/"+action, nil, request, &answer)
	return answer.Task, err
}

// ifChanged returns the value of a flag that is set; nil for one that is not.
func ifChanged[T any](c *cobra.Command, flag string, value *T) *T {
	if c.Flags().Changed(flag) {
		return value
	}
	return nil
}

// changeCommands returns the commands that change one task.
func (o *options) changeCommands() []*cobra.Command {
	class := &cobra.Command{
		Use: "class NAME... CLASS", Short: "change the priority class of tasks, or their number", GroupID: "tasks", Args: cobra.MinimumNArgs(1),
		Example: "  kuota class train inference", ValidArgsFunction: o.completeTasks,
	}
	var s selector
	var run manyRun
	run.flags(class)
	class.Flags().StringArrayVar(&s.Teams, "team", nil, "of this team")
	class.Flags().BoolVar(&s.Mine, "mine", false, "that you submitted")
	class.RunE = func(c *cobra.Command, args []string) error {
		to, names := args[len(args)-1], args[:len(args)-1]
		run.yes = run.yes || len(names) == 1 && !isPattern(names[0])
		return o.actOnMany(c.Context(), run, "class", "Give class "+to+" to", to, s, names)
	}
	again := &cobra.Command{
		Use: "again NAME", Short: "submit a task again under the next name of its series", GroupID: "tasks", Args: oneTask,
		Example: "  kuota again train --name train-b", ValidArgsFunction: o.completeTasks,
	}
	name := again.Flags().String("name", "", "name of the new task")
	index := again.Flags().Int32("index", 0, "of an array, only this index")
	again.RunE = func(c *cobra.Command, args []string) error {
		t, err := o.onOne(c.Context(), args[0], "again", actionRequest{Name: *name, Index: ifChanged(c, "index", index)})
		if err == nil {
			fmt.Fprintln(o.out, clean(t.String()))
		}
		return err
	}
	front := &cobra.Command{
		Use: "front NAME", Short: "move a waiting task to the front of its queue, by the lowest class that does", GroupID: "tasks", Args: oneTask,
		Example: "  kuota front train", ValidArgsFunction: o.completeTasks,
		RunE: func(c *cobra.Command, args []string) error {
			_, err := o.onOne(c.Context(), args[0], "front", actionRequest{})
			return err
		},
	}
	resize := &cobra.Command{
		Use: "resize NAME", Short: "change the sizes and times of an elastic task, or the replicas of a service", GroupID: "tasks", Args: oneTask,
		Example: "  kuota resize train --min 2 --max 8 --step 2\n  kuota resize train --grace 90", ValidArgsFunction: o.completeTasks,
	}
	var to sizes
	var replicas int32
	resize.Flags().Int32Var(&to.Min, "min", 0, "fewest pods of an elastic task")
	resize.Flags().Int32Var(&to.Max, "max", 0, "most pods of an elastic task")
	resize.Flags().Int32Var(&to.Step, "step", 0, "pods of one step")
	resize.Flags().Int32SliceVar(&to.Values, "sizes", nil, "allowed sizes, in place of --min, --max and --step")
	resize.Flags().Int32Var(&replicas, "replicas", 0, "of a service")
	resize.Flags().StringVar(&to.Growth, "growth", "", "Provision asks for nodes where the quota has room; ExistingNodes does not")
	unscheduled := resize.Flags().Int32("max-unscheduled", 0, "most pods that wait for nodes at once; 0 for those of one step")
	scale := resize.Flags().StringArray("scale", nil, "variable for one size, SIZE:NAME=value, in place of all that it has; none removes them")
	timeFlags(resize)
	resize.RunE = func(c *cobra.Command, args []string) error {
		changed := c.Flags().Changed
		to.Times = timesOf(c)
		to.MaxUnscheduled = ifChanged(c, "max-unscheduled", unscheduled)
		if changed("scale") {
			bySize := map[string]map[string]string{}
			if !slices.Equal(*scale, []string{"none"}) {
				var err error
				if bySize, err = scaleConfig(*scale); err != nil {
					return err
				}
			}
			to.ScaleConfig = &bySize
		}
		other := len(to.Times) > 0 || to.Growth != "" || to.MaxUnscheduled != nil || to.ScaleConfig != nil
		sized := changed("min") || changed("max") || changed("step") || changed("sizes")
		switch {
		case changed("replicas") && (sized || other):
			return errors.New("--replicas is for a service, and the other flags are for an elastic task")
		case changed("replicas"):
			_, err := o.onOne(c.Context(), args[0], "scale", actionRequest{Replicas: &replicas})
			return err
		case !sized && other: // the sizes stay
		case len(to.Values) == 0 && (!changed("min") || !changed("max")):
			return errors.New("set --min and --max, --sizes, --growth, --scale or a time, or --replicas for a service")
		case len(to.Values) == 0 && to.Step == 0:
			to.Step = 1
		}
		_, err := o.onOne(c.Context(), args[0], "resize", actionRequest{Sizes: &to})
		return err
	}
	return []*cobra.Command{class, again, front, resize}
}
