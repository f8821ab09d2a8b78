package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// submitRequest has manifests, or the values of one task.
type submitRequest struct {
	Manifest string       `json:"manifest,omitempty"`
	Task     *taskRequest `json:"task,omitempty"`
	Priority *int32       `json:"priority,omitempty"`
	After    []string     `json:"after,omitempty"`
}

const priorityUsage = "priority from 0 to 99 instead of a class, if the policy allows numbers"

// afterFlag adds the flag of the tasks that have to end before.
func (o *options) afterFlag(c *cobra.Command, after *[]string) {
	c.Flags().StringArrayVar(after, "after", nil, "start once this task has succeeded, or, as NAME:any, however it ends")
	_ = c.RegisterFlagCompletionFunc("after", o.completeTasks)
}

// taskRequest is a task in the values of the form of tasks.
type taskRequest struct {
	Name           string            `json:"name"`
	Kind           string            `json:"kind,omitempty"`
	Share          string            `json:"share,omitempty"`
	Class          string            `json:"class,omitempty"`
	Pool           string            `json:"pool,omitempty"`
	OtherPools     []string          `json:"otherPools,omitempty"`
	Pods           int32             `json:"pods,omitempty"`
	Least          int32             `json:"least,omitempty"`
	Accelerators   *int64            `json:"accelerators,omitempty"`
	VCPU           string            `json:"vcpu,omitempty"`
	Memory         string            `json:"memory,omitempty"`
	Profile        string            `json:"profile,omitempty"`
	Parts          int32             `json:"parts,omitempty"`
	Image          string            `json:"image,omitempty"`
	Command        string            `json:"command,omitempty"`
	Script         string            `json:"script,omitempty"`
	TimeLimit      string            `json:"timeLimit,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Secrets        []string          `json:"secrets,omitempty"`
	Volumes        []string          `json:"volumes,omitempty"`
	SharedMemory   string            `json:"sharedMemory,omitempty"`
	ServiceAccount string            `json:"serviceAccount,omitempty"`
	Processes      int32             `json:"processes,omitempty"`
	Tries          int32             `json:"tries,omitempty"`
	Recipe         string            `json:"recipe,omitempty"`
	Array          string            `json:"array,omitempty"`
	Elastic        *elastic          `json:"elastic,omitempty"`
}

type elastic struct {
	Max   int32   `json:"max"`
	Step  int32   `json:"step,omitempty"`
	Sizes []int32 `json:"sizes,omitempty"`
	// Times are seconds by the name of the field of elasticPolicy.
	Times       map[string]int32             `json:"times,omitempty"`
	ScaleConfig map[string]map[string]string `json:"scaleConfig,omitempty"`

	Growth         string `json:"growth,omitempty"`
	MaxUnscheduled int32  `json:"maxUnscheduled,omitempty"`
}

// submitted is a task that was submitted, or would be.
type submitted struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Created   bool   `json:"created"`
	Changed   []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"changed,omitempty"`
	Verdict *struct {
		Outcome   string   `json:"outcome"`
		Headline  string   `json:"headline"`
		Text      string   `json:"text"`
		Notes     []string `json:"notes"`
		Simulated bool     `json:"simulated"`
		Preempted []string `json:"preempted"`
	} `json:"verdict,omitempty"`
	Manifest string `json:"manifest"`
}

func (s submitted) task() task { return task{Namespace: s.Namespace, Kind: s.Kind, Name: s.Name} }

// submit submits tasks to a team, or checks them.
func (c *client) submit(ctx context.Context, team string, dryRun bool, request submitRequest) ([]submitted, error) {
	var query url.Values
	if dryRun {
		query = url.Values{"dryRun": {"true"}}
	}
	var answer struct{ Tasks []submitted }
	err := c.call(ctx, http.MethodPost, "/teams/"+url.PathEscape(team)+"/tasks", query, request, &answer)
	return answer.Tasks, err
}

// team returns the team that a flag names, or the only one that the user sees.
func (c *client) team(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	names, err := c.teams(ctx)
	switch {
	case err != nil:
		return "", err
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", errors.New("you are in no team yet. Ask an admin to add you as a member")
	}
	return "", fmt.Errorf("for which team? Set --team or KUOTA_TEAM; you see %s", strings.Join(names[:min(len(names), 5)], ", "))
}

// teams returns the names of the teams that the user sees, of the first page.
func (c *client) teams(ctx context.Context) ([]string, error) {
	var answer struct{ Teams []struct{ Name string } }
	if err := c.call(ctx, http.MethodGet, "/teams", nil, nil, &answer); err != nil {
		return nil, err
	}
	names := make([]string, len(answer.Teams))
	for i, t := range answer.Teams {
		names[i] = t.Name
	}
	return names, nil
}

// submitCommand returns the command that submits manifests.
func (o *options) submitCommand() *cobra.Command {
	var files, after []string
	var team string
	var dryRun bool
	c := &cobra.Command{
		Use: "submit -f FILE...", Short: "submit the tasks of manifests to the queue of a team", GroupID: "tasks", Args: cobra.NoArgs,
		Long: `Submits Jobs, PyTorchJobs, RayJobs, JobSets, TrainJobs, ElasticJobs, and training jobs of HyperPod
with an elastic policy, in YAML or JSON, with one or several documents. The team's namespace and queue
replace those of the manifest; labels of the queue on a pod template move to the task. Each change is
printed. Without --team it is your only team.`,
		Example: "  kuota submit -f train.yaml --team vision --dry-run",
	}
	c.Flags().StringArrayVarP(&files, "filename", "f", nil, "file with manifests, a folder, or - for the standard input")
	c.Flags().StringVar(&team, "team", os.Getenv("KUOTA_TEAM"), "team; default $KUOTA_TEAM, else your only one")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "submit nothing; print what would happen, and the manifest")
	priority := c.Flags().Int32("priority", 0, priorityUsage)
	o.afterFlag(c, &after)
	_ = c.MarkFlagRequired("filename")
	_ = c.RegisterFlagCompletionFunc("team", o.completeTeams)
	o.outputFlag(c, "text", "name", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text, err := o.manifests(files)
		if err != nil {
			return err
		}
		client, err := o.client()
		if err != nil {
			return err
		}
		if team, err = client.team(c.Context(), team); err != nil {
			return err
		}
		done, err := client.submit(c.Context(), team, dryRun, submitRequest{Manifest: text, Priority: ifChanged(c, "priority", priority), After: after})
		if err != nil {
			return err
		}
		return o.printSubmitted(done)
	}
	return c
}

// manifests reads the manifests of files and folders as one text.
func (o *options) manifests(files []string) (string, error) {
	var texts []string
	for _, name := range files {
		all := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			all = nil
			for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
				found, err := filepath.Glob(filepath.Join(name, pattern))
				if err != nil {
					return "", err
				}
				all = append(all, found...)
			}
			slices.Sort(all)
			if len(all) == 0 {
				return "", fmt.Errorf("%s has no .yaml, .yml or .json", name)
			}
		}
		for _, file := range all {
			var text []byte
			var err error
			if file == "-" {
				text, err = io.ReadAll(o.in())
			} else {
				text, err = os.ReadFile(file)
			}
			if err != nil {
				return "", err
			}
			texts = append(texts, strings.TrimRight(string(text), "\n"))
		}
	}
	return strings.Join(texts, "\n---\n") + "\n", nil
}

// printSubmitted prints what became of tasks.
func (o *options) printSubmitted(done []submitted) error {
	if o.output == "json" {
		return o.json(map[string]any{"tasks": done})
	}
	for i, s := range done {
		for _, changed := range s.Changed {
			fmt.Fprintf(o.messages, "%s: %s\n", clean(changed.Field), clean(changed.Message))
		}
		if s.Created || o.output == "name" {
			fmt.Fprintln(o.out, clean(s.task().String()))
			continue
		}
		if v := s.Verdict; v != nil {
			text := []string{v.Headline, v.Text}
			text = append(text, v.Notes...)
			if len(v.Preempted) > 0 {
				text = append(text, "It would preempt "+strings.Join(v.Preempted, ", ")+".")
			}
			if v.Simulated {
				text = append(text, "(simulated)")
			}
			fmt.Fprintf(o.messages, "%s: %s\n", clean(s.Name), clean(strings.Join(slices.DeleteFunc(text, func(t string) bool { return t == "" }), " ")))
		}
		if i > 0 {
			fmt.Fprintln(o.out, "---")
		}
		fmt.Fprintln(o.out, strings.TrimRight(s.Manifest, "\n"))
	}
	return nil
}

// runFlags are the flags of kuota run.
type runFlags struct {
	task           taskRequest
	team           string
	gpus           int64
	priority       *int32
	env, after     []string
	elastic        elastic
	scale          []string // of elastic.ScaleConfig
	source         string
	dryRun, detach bool
}

// runCommand returns the command that submits a command as a task and follows it.
func (o *options) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run [flags] [-- COMMAND [ARGUMENT...]]", Short: "run a command as a task, and follow its log until it ends", GroupID: "tasks",
		Long: `Submits a Job with the command, or with that of --image, waits until it starts, prints its log, and ends with 0 if the task
completes and 1 if it fails. Ctrl-C asks whether to stop the task. vCPU and memory that are left out are
the share of the node that belongs to the accelerators.`,
		Example: "  kuota run --team vision --gpus 2 --class training --image pytorch/pytorch -- python train.py --epochs 3",
	}
	flags := c.Flags()
	flags.StringVar(&f.team, "team", os.Getenv("KUOTA_TEAM"), "team; default $KUOTA_TEAM, else your only one")
	flags.StringVar(&f.task.Name, "name", "", "name of the task; default the name of the program with some letters")
	flags.Int64Var(&f.gpus, "gpus", 0, "GPUs, or Neuron devices, of each pod")
	flags.StringVar(&f.task.VCPU, "cpu", "", "vCPU of each pod")
	flags.StringVar(&f.task.Memory, "memory", "", "memory of each pod in GiB")
	flags.Int32Var(&f.task.Pods, "pods", 1, "pods")
	flags.StringVar(&f.task.Pool, "pool", "", "pool; default the first of the team")
	flags.StringArrayVar(&f.task.OtherPools, "or-pool", nil, "another pool that it may run in; the minimum of an elastic task stays in --pool")
	flags.StringVar(&f.task.Class, "class", "", "priority class; default the lowest")
	priority := flags.Int32("priority", 0, priorityUsage)
	flags.StringVar(&f.task.Share, "share", "", "share of the team; default its own queue")
	flags.StringVar(&f.task.Image, "image", os.Getenv("KUOTA_IMAGE"), "image; default $KUOTA_IMAGE")
	flags.StringVar(&f.task.TimeLimit, "time-limit", "", "how long it may run, such as 1h30m; default that of the class")
	flags.StringVar(&f.task.Kind, "kind", "", "Job, the default, PyTorchJob, RayJob or JobSet")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "environment variable NAME=value, or NAME for its value here")
	flags.StringArrayVar(&f.task.Secrets, "secret", nil, "name of a Secret whose keys become variables, or NAME=secret/key")
	flags.StringArrayVarP(&f.task.Volumes, "volume", "v", nil, "claim that is mounted, /path=claim or /path=claim:ro")
	flags.StringVar(&f.task.SharedMemory, "shm", "", "shared memory in GiB")
	flags.Int32Var(&f.task.Tries, "tries", 0, "tries before the task fails")
	flags.Int32Var(&f.task.Processes, "processes", 0, "processes of each pod, for torchrun")
	flags.Int32Var(&f.elastic.Max, "max-pods", 0, "make it elastic: it grows to this many pods while compute is idle")
	flags.Int32Var(&f.elastic.Step, "step", 0, "pods by which an elastic task grows")
	flags.Int32SliceVar(&f.elastic.Sizes, "sizes", nil, "make it elastic: the sizes that it may have, such as 2,4,8, in place of --max-pods and --step")
	flags.StringArrayVar(&f.scale, "scale", nil, "variable of an elastic task for one size, SIZE:NAME=value")
	flags.StringVar(&f.elastic.Growth, "growth", "", "of an elastic task: Provision asks for nodes where the quota has room")
	flags.Int32Var(&f.elastic.MaxUnscheduled, "max-unscheduled", 0, "most pods of it that wait for nodes at once; default those of one step")
	timeFlags(c)
	flags.StringVar(&f.task.Recipe, "recipe", "", "recipe of Kuota, which the other flags change; kuota template recipes lists them")
	flags.StringVar(&f.source, "source", "", "folder whose files the task gets, without .git and what .gitignore names; the command runs in it. The team can read them")
	flags.StringVar(&f.task.Array, "array", "", "run once for each index, such as 1-200%20: 20 at once, or as many as fit at its start. $KUOTA_ARRAY_INDEX has it")
	flags.Int32Var(&f.task.Least, "least", 0, "fewest pods with which it may start; default all")
	o.afterFlag(c, &f.after)
	flags.BoolVar(&f.dryRun, "dry-run", false, "submit nothing; print what would happen, and the manifest")
	flags.BoolVarP(&f.detach, "detach", "d", false, "do not follow it")
	for flag, complete := range map[string]cobra.CompletionFunc{"team": o.completeTeams, "class": o.completeClasses, "pool": o.completePools, "or-pool": o.completePools} {
		_ = c.RegisterFlagCompletionFunc(flag, complete)
	}
	o.outputFlag(c, "text", "name", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && f.task.Recipe == "" && (!c.Flags().Changed("image") || f.source != "") {
			return errors.New("what should it run? Write the command after --, such as kuota run --gpus 1 -- python train.py, or name an --image that has one")
		}
		if c.Flags().Changed("gpus") {
			f.task.Accelerators = &f.gpus
		}
		f.priority = ifChanged(c, "priority", priority)
		f.elastic.Times = timesOf(c)
		return o.run(c.Context(), f, args)
	}
	return c
}

// run submits a command and follows it.
func (o *options) run(ctx context.Context, f runFlags, args []string) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	f.task.Command = quoted(args)
	if f.source != "" {
		if f.task.Script, err = pack(f.source, f.task.Command, o.ask); err != nil {
			return err
		}
		f.task.Command = ""
	}
	if f.task.Name == "" {
		f.task.Name = nameOf(args, cmp.Or(f.task.Recipe, f.task.Image))
	}
	if f.task.Elastic, err = f.elasticTask(); err != nil {
		return err
	}
	f.task.Env = map[string]string{}
	for _, variable := range f.env {
		name, value, set := strings.Cut(variable, "=")
		if !set {
			value = os.Getenv(name)
		}
		f.task.Env[name] = value
	}
	if f.team, err = client.team(ctx, f.team); err != nil {
		return err
	}
	done, err := client.submit(ctx, f.team, f.dryRun, submitRequest{Task: &f.task, Priority: f.priority, After: f.after})
	if err != nil {
		return err
	}
	if f.dryRun || f.detach || o.output != "text" {
		return o.printSubmitted(done)
	}
	return o.followTask(ctx, client, done[0].task())
}

// elasticTask returns what makes the task elastic; nil for nothing.
func (f *runFlags) elasticTask() (*elastic, error) {
	e := f.elastic
	if e.Max == 0 && len(e.Sizes) == 0 {
		if e.Step > 0 || len(e.Times) > 0 || len(f.scale) > 0 || e.Growth != "" || e.MaxUnscheduled > 0 {
			return nil, errors.New("--step, --scale, --growth, --max-unscheduled and the times are for an elastic task: add --max-pods or --sizes")
		}
		return nil, nil
	}
	var err error
	e.ScaleConfig, err = scaleConfig(f.scale)
	return &e, err
}

// scaleConfig returns the variables by size and name that --scale sets; nil for none.
func scaleConfig(texts []string) (bySize map[string]map[string]string, err error) {
	for _, text := range texts {
		size, variable, _ := strings.Cut(text, ":")
		name, value, ok := strings.Cut(variable, "=")
		if !ok {
			return nil, fmt.Errorf("--scale %s is no SIZE:NAME=value, such as 8:BATCH_SIZE=32", text)
		}
		if bySize == nil {
			bySize = map[string]map[string]string{}
		}
		if bySize[size] == nil {
			bySize[size] = map[string]string{}
		}
		bySize[size][name] = value
	}
	return bySize, nil
}

// quoted returns a command line that sh reads as these arguments.
func quoted(args []string) string {
	parts := make([]string, len(args))
	for i, arg := range args {
		if parts[i] = arg; arg == "" || strings.ContainsFunc(arg, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,@%+", r))
		}) {
			parts[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}

// nameOf returns a name for a command: of its script or its program, or, if it is that of an image, of
// the image, with some letters.
func nameOf(args []string, image string) string {
	if len(args) == 0 {
		image, _, _ = strings.Cut(filepath.Base(image), "@")
		image, _, _ = strings.Cut(image, ":")
		args = []string{image}
	}
	base := args[0]
	for _, arg := range args[1:] {
		if ext := filepath.Ext(arg); ext == ".py" || ext == ".sh" {
			base = arg
			break
		}
	}
	base = strings.TrimSuffix(filepath.Base(base), filepath.Ext(base))
	base = strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, base), "-")
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "task"
	}
	return base[:min(len(base), 40)] + "-" + strings.ToLower(rand.Text()[:5])
}

// errFailed is that a task that was followed did not complete.
var errFailed = errors.New("the task did not complete")

// followTask prints the status and the log of a task until it ends.
func (o *options) followTask(ctx context.Context, c *client, t task) error {
	fmt.Fprintf(o.messages, "Submitted %s.\n", clean(t.String()))
	said := ""
	say := func(text string) {
		if text = clean(text); text != "" && text != said {
			said = text
			fmt.Fprintln(o.messages, text)
		}
	}
	err := func() error {
		logged := map[string]bool{}
		for {
			var e explanation
			err := c.call(ctx, http.MethodGet, t.path()+"/why", nil, nil, &e)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case isNotFound(err): // not in the list yet, or deleted
			case err != nil:
				return err
			}
			switch status := e.Status; {
			case status == "Succeeded":
				say(status + ".")
				return nil
			case status == "Failed" || status == "Stopped":
				say(status + ".")
				return errFailed
			case isNotFound(err) && said != "":
				say("It was deleted.")
				return errFailed
			case isNotFound(err):
			default:
				text := status
				if e.Why != nil && e.Why.Headline != "" {
					text += ": " + e.Why.Headline
				}
				say(text)
			}
			if pods, err := c.pods(ctx, t); err == nil {
				for _, p := range pods {
					if (p.Phase == "Running" || p.Phase == "Succeeded" || p.Phase == "Failed") && !logged[p.Name] {
						logged[p.Name] = true
						if err := c.log(ctx, t, p.Name, logFlags{follow: true}, func(line string) { fmt.Fprintln(o.out, cleanLog(line)) }); err != nil && ctx.Err() == nil {
							say("The log of " + p.Name + " cannot be read: " + err.Error())
						}
					}
				}
			}
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	}()
	if ctx.Err() == nil {
		return err
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if o.ask("\nStop "+t.Name+"?") != nil {
		fmt.Fprintf(o.messages, "%s goes on: kuota logs -f %s\n", t.Name, t)
		return nil
	}
	return c.call(background, http.MethodPost, t.path()+"/stop", nil, actionRequest{}, nil)
}
