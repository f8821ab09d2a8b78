package teams

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
)

// serves is the service that a form submits, as in its address; empty for a task that
// ends.
type serves string

const (
	inference serves = "service"
	notebook  serves = "notebook"
)

// kinds returns the kinds of a service; the first is the usual one.
func (s serves) kinds() []submit.Kind {
	if s == notebook {
		return []submit.Kind{submit.StatefulSet}
	}
	return []submit.Kind{submit.Deployment, submit.LeaderWorkerSet}
}

// url returns the address of a form.
func (s serves) url(team string) string {
	if s == "" {
		return urls.TeamSubmit(team)
	}
	return urls.TeamSubmit(team) + "/" + string(s)
}

// words returns the title and the lead of a page.
func (s serves) words() (title, lead string) {
	switch s {
	case inference:
		return "Submit an inference service", "It runs until you stop it. Kueue starts each replica once the team has quota for it."
	case notebook:
		return "Submit a notebook", "It runs until you stop it, and uses its quota all that time."
	}
	return "Submit a task", "Kueue starts it once the team has quota for it."
}

// may reports whether the console can submit it to a team for the user, and whether the
// user can create it by hand.
func (s serves) may(t submit.Team) (may, shown bool) {
	if s == "" {
		return t.MaySubmit, len(t.Kinds) > 0
	}
	return t.MayServe(s.kinds()...), slices.ContainsFunc(s.kinds(), func(k submit.Kind) bool { return slices.Contains(t.ServiceKinds, k) })
}

// unreached returns a team whose cluster does not answer, for a form that keeps what was
// typed.
func (s serves) unreached(team string) submit.Team {
	return submit.Team{Name: team, MaySubmit: true, Writes: true, Kinds: []submit.Kind{submit.Job, submit.ElasticJob}, ServiceKinds: []submit.Kind{submit.Deployment, submit.StatefulSet, submit.LeaderWorkerSet}}
}

// links returns the pages of the kinds of tasks that the user can submit to a team.
func (s serves) links(t submit.Team) (links []views.Tab) {
	for _, one := range []struct {
		serves
		label string
	}{{"", "Task"}, {inference, "Inference service"}, {notebook, "Notebook"}} {
		if _, shown := one.may(t); shown && t.Namespace != "" { // while the cluster does not answer, nothing is known
			links = append(links, views.Tab{Label: one.label, URL: one.url(t.Name), Current: one.serves == s})
		}
	}
	return links
}

// servingInputs are the inputs of a service, as typed.
type servingInputs struct {
	replicas, port           string
	home, homeSize, homePath string // of a notebook
}

func (f *servingInputs) inputs() map[string]*string {
	return map[string]*string{"replicas": &f.replicas, "port": &f.port, "home": &f.home, "home-size": &f.homeSize, "home-path": &f.homePath}
}

// emptyServing sets the initial values of a service. Kueue cannot limit a Deployment, so
// its class is the lowest without a maximum.
func (f *submitForm) emptyServing(s serves, t submit.Team) {
	switch f.serves = s; s {
	case inference:
		f.replicas, f.port, f.class = "1", "8000", ""
		for _, class := range t.Classes { // the highest first
			if class.MaximumTimeLimit == 0 {
				f.class = class.Name
			}
		}
	case notebook:
		f.port, f.command = "8888", "jupyter lab --ip=127.0.0.1 --port=8888 --no-browser"
	}
}

// serving parses the inputs of a service.
func (f *submitForm) serving(r *submit.Request, wrong *governance.FieldErrors) {
	s := &submit.Serving{Replicas: 1}
	whole := func(into *int32, path, text string, most int64) {
		n, problem := forms.ParseWhole(text, 1, most)
		if wrong.Add(path, problem); problem == "" {
			*into = int32(n)
		}
	}
	if f.serves == notebook {
		r.Pods = 1
		s.Notebook = &submit.Notebook{Home: f.homePath, Claim: f.home}
		var problem string
		s.Notebook.Size, problem = forms.ParseGiB(f.homeSize)
		wrong.Add("homeSize", problem)
	} else {
		whole(&s.Replicas, "replicas", f.replicas, submit.MaxReplicas)
	}
	if f.port != "" {
		whole(&s.Port, "port", f.port, 65535)
	}
	r.Serving = s
}

// fillServing sets the inputs of a service.
func (f *submitForm) fillServing(view *teamviews.SubmitForm, t submit.Team, r submit.Request, text func(id, value string) views.TextField) {
	view.Serving = &teamviews.ServingFields{
		Kind: string(r.Serving.Kind(r.Pods)), Notebook: f.serves == notebook, Groups: slices.Contains(t.ServiceKinds, submit.LeaderWorkerSet),
		Replicas: text("replicas", f.replicas), Port: text("port", f.port),
		Home: text("home", f.home), HomeSize: text("home-size", f.homeSize), HomePath: text("home-path", f.homePath), DefaultHomePath: submit.DefaultHome,
	}
}

// noService returns why the user cannot submit a service here.
func (h *Pages) noService(s serves, t submit.Team) string {
	if _, shown := s.may(t); shown {
		return h.ReadOnlyReason()
	}
	kind := s.kinds()[0]
	return fmt.Sprintf("Kueue does not manage a %s in this cluster, or you have no permission to create one in the team's namespace. A cluster admin can change both: see Kinds of jobs on the settings page.", kind)
}

// serviceManifests returns the manifests of a service, and how it is reached.
func serviceManifests(p submit.Plan) (teamviews.SubmitManifests, error) {
	m := teamviews.SubmitManifests{Lead: "Save one as a file for " + p.Kubectl() + ", or paste the command."}
	if p.Name == "" || p.Image == "" {
		m.Lead += " Put your own name and image into it first."
	}
	one, err := p.Manifest()
	if err != nil {
		return m, err
	}
	m.Sources = []teamviews.SubmitSource{
		{ID: "manifest-" + strings.ToLower(string(one.Kind)), Title: string(one.Kind), Text: one.Text},
		{ID: "manifest-kubectl", Title: "kubectl, as one command", Text: p.KubectlCommand(one)},
	}
	reached, err := reachedBy(p)
	m.Sources = append(m.Sources, reached...)
	return m, err
}

// reachedBy returns how a service is reached: by kubectl port-forward, and by other pods.
func reachedBy(p submit.Plan) (sources []teamviews.SubmitSource, err error) {
	command := p.PortForward()
	if command == "" {
		return []teamviews.SubmitSource{{Note: "Give a port to see how it is reached."}}, nil
	}
	forward := teamviews.SubmitSource{ID: "reach-forward", Title: "Reach it: kubectl port-forward", Text: command}
	switch {
	case !p.Team.MayForward:
		forward = teamviews.SubmitSource{Note: "It is reached by kubectl port-forward, for which you have no permission: create pods/portforward in the team's namespace. Ask a cluster admin."}
	case p.Serving.Notebook != nil:
		forward.Note = fmt.Sprintf("Run it on your computer once the notebook runs, and open http://localhost:%d. Jupyter prints its token to the log.", p.Serving.Port)
	default:
		forward.Note = fmt.Sprintf("Run it on your computer once a replica runs: it forwards http://localhost:%d to one of them.", p.Serving.Port)
	}
	sources = append(sources, forward)
	switch {
	case p.Serving.Notebook != nil:
		return sources, nil
	case !p.Team.MayExpose:
		return append(sources, teamviews.SubmitSource{Note: "Other pods reach it by a Service, which you cannot create here. Ask a cluster admin for one."}), nil
	}
	endpoint, err := p.EndpointManifest()
	return append(sources, teamviews.SubmitSource{ID: "manifest-service", Title: "Service, for other pods", Text: endpoint.Text}), err
}

// withReplicas adds to the verdict on the first replica of a service how many would be
// admitted.
func withReplicas(said *teamviews.SubmitVerdict, v submit.Verdict, p submit.Plan) {
	wanted := p.Serving.Replicas
	each := eachWords(p)
	switch {
	case wanted == 1:
		if said.Tone == "ok" {
			said.Text = fmt.Sprintf("There is quota for it: %s.", ofPool(p))
		}
		return
	case said.Tone == "ok" && v.Replicas >= wanted:
		said.Text = fmt.Sprintf("There is quota for all %s: each is %s.", format.Count(int(wanted), "replica"), ofPool(p))
	case said.Tone == "ok" && v.Replicas > 0:
		said.Headline = fmt.Sprintf("%d of its %s would be admitted now.", v.Replicas, format.Count(int(wanted), "replica"))
		said.Text = fmt.Sprintf("Each is %s. The others wait for quota, and start one by one.", ofPool(p))
	default:
		said.Notes = append(said.Notes, fmt.Sprintf("That is its first replica: %s. The others wait, and start one by one.", each))
	}
	if v.MaxReplicas < wanted && v.MaxReplicas > 0 {
		said.Notes = append(said.Notes, fmt.Sprintf("The team can never have more than %s of it at once.", format.Count(int(v.MaxReplicas), "replica")))
	}
}
