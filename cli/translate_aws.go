package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	ofConsole = "kuota finds the console by --server, and you by kuota login"
	oneObject = "Kuota finds a team by its name, and takes the version that is saved now"
	readsFile = "kuota translate reads no file; kuota import --apply does"
)

// awsFlags returns the flags of an operation of the AWS CLI.
func awsFlags(left map[string]string, translated ...string) commandFlags {
	for _, flag := range []string{"region", "profile", "endpoint-url", "ca-bundle", "no-verify-ssl", "no-sign-request", "cluster-arn"} {
		left[flag] = ofConsole
	}
	for _, flag := range []string{"output", "query", "color", "no-cli-pager", "no-paginate", "debug", "generate-cli-skeleton", "cli-auto-prompt", "no-cli-auto-prompt", "cli-binary-format", "cli-read-timeout", "cli-connect-timeout"} {
		left[flag] = printsOnly
	}
	left["tags"] = "Kuota has no tags"
	left["target-version"] = oneObject
	left["cli-input-json"], left["cli-input-yaml"] = readsFile, readsFile
	return commandFlags{translated: translated, left: left, switches: []string{"no-verify-ssl", "no-sign-request", "no-cli-pager", "no-paginate", "debug", "cli-auto-prompt", "no-cli-auto-prompt"}}
}

var (
	quotaFlags = awsFlags(map[string]string{
		"description":      "kuota allocation has no flag for it; write it into the JSON of kuota allocation edit -f, or use kuota import --apply",
		"compute-quota-id": oneObject,
	}, "name", "compute-quota-config", "compute-quota-target", "activation-state")
	schedulerFlags = awsFlags(map[string]string{
		"name": "a cluster has one policy", "description": "a policy has no description", "cluster-scheduler-config-id": oneObject,
	}, "scheduler-config")
)

// quota translates a compute quota.
func (t *translation) quota(update bool) error {
	target, err := t.structure("compute-quota-target")
	if err != nil {
		return err
	}
	config, err := t.structure("compute-quota-config")
	if err != nil {
		return err
	}
	team := text(target["TeamName"])
	if team == "" {
		return errors.New("which team? --compute-quota-target has no TeamName, and Kuota does not know the IDs of compute quotas")
	}
	verb := "create"
	if update {
		verb = "edit"
	}
	t.line = []string{"kuota", "allocation", verb, team}
	rows, _ := config["ComputeQuotaResources"].([]any)
	for _, row := range rows {
		t.row(row)
	}
	if update && len(rows) > 0 {
		t.note("kuota allocation edit keeps the quota in other pools, which --compute-quota-config replaces; kuota import --apply replaces it too.")
	}
	sharing, _ := config["ResourceSharingConfig"].(map[string]any)
	t.choice("sharing", "Strategy", text(sharing["Strategy"]), map[string]string{"LendAndBorrow": "lend-and-borrow", "Lend": "lend", "DontLend": "dont-lend"})
	t.add("borrow-limit", text(sharing["BorrowLimit"]))
	if sharing["AbsoluteBorrowLimits"] != nil {
		t.note("AbsoluteBorrowLimits is left out: kuota allocation has no flag for it; kuota import --apply saves it.")
	}
	t.choice("preemption", "PreemptTeamTasks", text(config["PreemptTeamTasks"]), map[string]string{"LowerPriority": "lower-priority", "Never": "never"})
	t.add("weight", text(target["FairShareWeight"]))
	t.add("display-name", t.get("name"))
	switch state := t.get("activation-state"); {
	case state == "Disabled":
		t.note("--activation-state Disabled is left out: run kuota allocation hold %s afterwards.", team)
	case state == "Enabled" && update:
		t.note("--activation-state Enabled is left out: if the queue of the team is held, run kuota allocation resume %s.", team)
	case state != "" && state != "Enabled":
		t.note("--activation-state %s is left out: it is neither Enabled nor Disabled.", state)
	}
	t.unknown("compute-quota-target", target, "TeamName", "FairShareWeight")
	t.unknown("compute-quota-config", config, "ComputeQuotaResources", "ResourceSharingConfig", "PreemptTeamTasks")
	t.unknown("ResourceSharingConfig", sharing, "Strategy", "BorrowLimit", "AbsoluteBorrowLimits")
	return nil
}

// row adds the quota in one instance type.
func (t *translation) row(value any) {
	row, _ := value.(map[string]any)
	instance := text(row["InstanceType"])
	var amounts []string
	for _, amount := range [][2]string{{"Count", "instances"}, {"Accelerators", "gpus"}, {"VCpu", "vcpu"}, {"MemoryInGiB", "memory"}} {
		if n := text(row[amount[0]]); n != "" {
			amounts = append(amounts, amount[1]+"="+n)
		}
	}
	if row["AcceleratorPartition"] != nil {
		t.note("AcceleratorPartition of %s is left out: kuota allocation has no flag for parts of GPUs; kuota import --apply saves it.", instance)
	}
	if instance != "" && len(amounts) > 0 {
		t.add("quota", instance+": "+strings.Join(amounts, ", "))
	} else if row["AcceleratorPartition"] == nil {
		t.note("A row of ComputeQuotaResources is left out: it has no InstanceType, or no amount.")
	}
	t.unknown("ComputeQuotaResources", row, "InstanceType", "Count", "Accelerators", "VCpu", "MemoryInGiB", "AcceleratorPartition")
}

// scheduler translates a scheduler configuration.
func (t *translation) scheduler() error {
	config, err := t.structure("scheduler-config")
	if err != nil {
		return err
	}
	if len(config) == 0 {
		return errors.New("the command has no --scheduler-config, and changes nothing")
	}
	t.line = []string{"kuota", "policy", "edit"}
	classes, _ := config["PriorityClasses"].([]any)
	var weights []string
	for _, class := range classes {
		weights = append(weights, text(at(class, "Name"))+"="+text(at(class, "Weight")))
	}
	if len(weights) > 0 {
		t.add("prioritization", "task-ranking")
		t.add("class-weight", strings.Join(weights, ","))
		t.note("kuota policy edit keeps priority classes that the command does not name; kuota import --apply keeps none of them.")
	} else {
		t.add("prioritization", "first-come")
	}
	t.choice("idle", "FairShare", text(config["FairShare"]), map[string]string{"Enabled": "fair-share", "Disabled": "first-come"})
	if config["IdleResourceSharing"] != nil {
		t.note("IdleResourceSharing is left out: kuota policy edit has no flag for it; kuota import --apply saves it.")
	}
	t.unknown("scheduler-config", config, "PriorityClasses", "FairShare", "IdleResourceSharing")
	return nil
}

// choice adds a flag with the name that Kuota has for a value.
func (t *translation) choice(flag, field, value string, names map[string]string) {
	if value != "" && names[value] == "" {
		t.note("%s is left out: it has no value %s.", field, value)
	}
	t.add(flag, names[value])
}

// unknown notes the fields of an object that are not known.
func (t *translation) unknown(name string, object map[string]any, known ...string) {
	for _, field := range sortedKeys(object) {
		if !slices.Contains(known, field) {
			t.note("%s of %s is left out: kuota translate does not know it.", field, name)
		}
	}
}

// text returns a value of JSON as text; empty for none.
func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// structure returns the value of a flag, in JSON or in the AWS CLI's shorthand.
func (t *translation) structure(flag string) (object map[string]any, err error) {
	value := strings.TrimSpace(t.get(flag))
	switch {
	case value == "":
		return nil, nil
	case strings.HasPrefix(value, "file:"):
		return nil, fmt.Errorf("--%s names a file: %s", flag, readsFile)
	case strings.HasPrefix(value, "{"):
		if err := readNumbers(value, &object); err != nil {
			return nil, fmt.Errorf("--%s is no JSON: %w", flag, err)
		}
		return object, nil
	}
	s := shorthand{rest: value}
	object = s.fields("")
	if s.invalid {
		return nil, fmt.Errorf("--%s is no shorthand of the AWS CLI from %q: write name=value, with lists as [a,b] and objects as {name=value}", flag, s.rest[:min(len(s.rest), 40)])
	}
	return object, nil
}

// shorthand parses the shorthand of the AWS CLI: A=1,B={C=x},D=[{E=y}]. All scalars are texts.
type shorthand struct {
	rest    string
	depth   int
	invalid bool
}

const spaces = " \t\r\n\\" // a line that goes on within quotation marks keeps its backslash

// fields parses name=value pairs up to end.
func (s *shorthand) fields(end string) map[string]any {
	object := map[string]any{}
	for !s.ends(end) {
		name, rest, ok := strings.Cut(s.rest, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, ",[]{}") {
			s.invalid = true
			return object
		}
		s.rest = rest
		object[name] = s.value()
		s.comma(end)
	}
	return object
}

func (s *shorthand) value() any {
	const deepest = 10
	if s.depth++; s.depth > deepest {
		s.invalid = true
	}
	defer func() { s.depth-- }()
	switch s.rest = strings.TrimLeft(s.rest, spaces); {
	case s.invalid:
		return nil
	case s.begins("{"):
		return s.fields("}")
	case s.begins("["):
		list := []any{}
		for !s.ends("]") {
			list = append(list, s.value())
			s.comma("]")
		}
		return list
	case s.rest != "" && strings.ContainsAny(s.rest[:1], `"'`):
		quote := s.rest[:1]
		text, rest, ok := strings.Cut(s.rest[1:], quote)
		s.rest, s.invalid = rest, !ok
		return text
	}
	end := strings.IndexAny(s.rest, ",]}")
	if end < 0 {
		end = len(s.rest)
	}
	text := strings.TrimSpace(s.rest[:end])
	s.rest = s.rest[end:]
	return text
}

// ends reports whether the values end here, and reads their end.
func (s *shorthand) ends(end string) bool {
	s.rest = strings.TrimLeft(s.rest, spaces)
	return s.invalid || end == "" && s.rest == "" || end != "" && s.begins(end)
}

// comma reads what is between two values.
func (s *shorthand) comma(end string) {
	s.rest = strings.TrimLeft(s.rest, spaces)
	if !s.begins(",") && !(end == "" && s.rest == "" || end != "" && strings.HasPrefix(s.rest, end)) {
		s.invalid = true
	}
}

func (s *shorthand) begins(sign string) bool {
	rest, ok := strings.CutPrefix(s.rest, sign)
	if ok {
		s.rest = rest
	}
	return ok
}
