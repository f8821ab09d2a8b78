package submit

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"
)

// Reading is what a text with the manifest of one task becomes in a team.
type Reading struct {
	Kind, Name string
	Plan       *Plan                   // nil if it cannot be submitted
	Changed    []governance.FieldError // what is moved, replaced or left out
	Wrong      []governance.FieldError // why it cannot be submitted; without a plan it can be empty: then Changed has the reasons
	Manifest   string                  // what is created, if there is a plan
}

// ReadText plans the task of a text, before which the ConfigMap with its script can be. id is
// that of the form or of the request: a task with generateName gets a name that depends on it,
// so that a text that is sent twice is one task.
func (t Team) ReadText(text, id string) (r Reading, err error) {
	script, text := CutScript(text)
	source, wrong := ReadSource([]byte(text))
	if len(wrong) > 0 {
		return Reading{Wrong: wrong}, nil
	}
	if source == nil {
		return t.readElastic(text, script != nil, func(p Plan) (Plan, []governance.FieldError) { return p.WithScript(script) })
	}
	if prefix := source.GetGenerateName(); source.GetName() == "" && prefix != "" && sources[source.GroupVersionKind()] {
		source.SetName(generated(prefix, id, t.Namespace))
		r.Changed = append(r.Changed, governance.FieldError{Path: "metadata.generateName", Message: "becomes the name " + source.GetName()})
	}
	plan, changed, wrong := t.PlanSource(source)
	r.Name, r.Kind, r.Changed = source.GetName(), source.GetKind(), append(r.Changed, changed...)
	if len(wrong) == 0 {
		plan, wrong = plan.WithScript(script)
	}
	if r.Wrong = wrong; len(wrong) > 0 {
		return r, nil
	}
	m, err := plan.Manifest()
	r.Plan, r.Manifest = &plan, m.Text
	return r, err
}

// readElastic plans the elastic task of a text that package imports reads.
func (t Team) readElastic(text string, scripted bool, withScript func(Plan) (Plan, []governance.FieldError)) (r Reading, err error) {
	object, others := elasticTask(imports.Read([]byte(text)))
	if object.ElasticJob == nil {
		return Reading{Changed: others}, nil
	}
	plan, changed, wrong := t.PlanElasticJob(object.ElasticJob)
	known := func(p governance.FieldError) bool { return slices.Contains(wrong, p) }
	r = Reading{
		Name: object.ElasticJob.Name, Kind: string(ElasticJob), Manifest: object.YAML(),
		Changed: slices.Concat(slices.DeleteFunc(object.Problems, known), changed, others),
	}
	if len(wrong) == 0 && scripted {
		plan, wrong = withScript(plan)
	}
	if r.Wrong = wrong; len(wrong) > 0 {
		return r, nil
	}
	m, err := plan.AfterScript(Manifest{Kind: ElasticJob, Text: manifest.ElasticJobYAML(plan.ElasticJob())})
	r.Plan, r.Manifest = &plan, m.Text
	return r, err
}

// elasticTask returns the first elastic task of a text, and the problems with all else.
func elasticTask(read imports.Result) (task imports.Object, problems []governance.FieldError) {
	problems = read.Problems
	for _, o := range read.Objects {
		switch {
		case o.ElasticJob != nil && task.ElasticJob == nil:
			task = o
		case o.ElasticJob != nil:
			problems = append(problems, governance.FieldError{Message: "elastic task " + o.ElasticJob.Name + " was not read: submit one task at a time"})
		case o.Allocation != nil:
			problems = append(problems, governance.FieldError{Message: "the allocation of team " + o.Allocation.Name + " was not read: admins import it under Policies"})
		default:
			problems = append(problems, governance.FieldError{Message: "the cluster policy was not read: admins import it under Policies"})
		}
	}
	return task, problems
}

// generated returns a name with a prefix, as the API server writes them, that depends on id.
func generated(prefix, id, namespace string) string {
	const suffix, longestName = 5, 63 // as the API server has them
	sum := sha256.Sum256([]byte(namespace + "/" + prefix + "/" + id))
	text := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
	return prefix[:min(len(prefix), longestName-suffix)] + text[:suffix]
}

// separator matches the line between two documents of YAML.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// Texts divides a text into those of its tasks. A ConfigMap belongs to the task after it.
func Texts(text string) (texts []string) {
	pending := ""
	for _, part := range separator.Split(text, -1) {
		if isBlank(part) {
			continue
		}
		if pending != "" {
			part = pending + "\n---\n" + strings.TrimLeft(part, "\r\n")
		}
		if script, _ := CutScript(part + "\n---\n"); script != nil && pending == "" {
			pending = strings.Trim(part, "\r\n")
			continue
		}
		texts, pending = append(texts, part), ""
	}
	if pending != "" {
		texts = append(texts, pending)
	}
	return texts
}

// isBlank reports whether a document has comments at most.
func isBlank(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
