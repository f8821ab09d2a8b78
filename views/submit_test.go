package views_test

import (
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/htmlcheck"
	teamviews "kuota.dev/kuota/views/teams"
)

// sampleSubmit returns the form with every value invalid.
func sampleSubmit() teamviews.SubmitForm {
	bad := views.TextField{Value: "x!", Error: "This is wrong."}
	choice := views.SelectField{Options: []views.Option{{Label: "No priority class"}, {Value: "training-priority", Label: "training, 60", Selected: true}}, Error: "This is wrong."}
	return teamviews.SubmitForm{
		Action: "/teams/vision/submit", RequestID: "request-1", User: "ada", Submitted: true, Resumed: true, Failure: "The cluster does not answer.",
		Errors: []views.Message{{Field: "name", Label: "Name", Text: "This is wrong."}, {Text: "This belongs to no field."}},
		Name:   bad, Class: choice, Share: choice, Pool: choice, OtherPools: choice, Pods: bad, Accelerators: views.AmountField{bad, "1"}, Unit: "GPUs", VCPU: views.AmountField{bad, "24"}, Memory: views.AmountField{bad, "256"},
		Partitions: []string{"mig-1g.10gb"}, Profile: views.TextField{Value: "mig-1g.10gb", Error: "This is wrong."}, Count: bad, Image: bad, Command: bad, Least: bad, Limit: views.AmountField{bad, "1h"}, LongestLimit: "2h", Elastic: true, CanElastic: true, Env: bad, Secrets: bad, Volumes: bad, SharedMemory: bad, Account: bad, Processes: bad, Tries: teamviews.HintedField{TextField: bad, Hint: "Empty means 7."}, Kind: choice, Max: views.AmountField{bad, "8"}, Step: views.AmountField{bad, "4"}, Sizes: bad, Graceful: views.AmountField{bad, "30"}, Scaling: views.AmountField{views.TextField{}, "60"}, NodeCapacity: "The largest node has 8 GPUs.",
		Verdict: &teamviews.SubmitVerdict{
			Tone: "wait", Headline: "It would wait: 2 GPUs short.", Text: "It needs 4 GPUs.", Growth: "It could grow.", Notes: []string{"One task stands before it."},
			Steps:   []views.WhyStep{{Tone: "bad", Title: "Its own quota", Text: "All held:", Tasks: []views.AdmittedTaskLink{{views.TaskLink{"resnet", "/tasks/a/job/resnet"}, "4 GPUs"}}}},
			Changes: []views.WhyChange{{Title: "These tasks end", Tasks: []views.AdmittedTaskLink{{views.TaskLink{"resnet", ""}, ""}}}},
		},
		Manifests: sampleManifests(),
	}
}

// sampleServing returns the form of a service with every value invalid.
func sampleServing(notebook bool) teamviews.SubmitPage {
	page, bad := sampleSubmitPage(), views.TextField{Value: "x!", Error: "This is wrong."}
	page.Form.CanElastic = false
	page.Form.Serving = &teamviews.ServingFields{Kind: "Deployment", Notebook: notebook, Groups: true, Replicas: bad, Port: bad, Home: bad, HomeSize: bad, HomePath: bad, DefaultHomePath: "/home/jovyan"}
	page.Kinds = []views.Tab{{Label: "Job", URL: "/teams/vision/submit"}, {Label: "Notebook", URL: "/teams/vision/submit/notebook", Current: true}}
	return page
}

func sampleManifests() teamviews.SubmitManifests {
	return teamviews.SubmitManifests{Lead: "Save one as a file.", Sources: []teamviews.SubmitSource{{ID: "manifest-job", Title: "Job", Text: "kind: Job\n"}, {ID: "manifest-hyp", Title: "HyperPod CLI", Note: "It takes whole instances only."}}}
}

func sampleTeam() teamviews.TeamPage {
	return teamviews.TeamPage{
		Chrome: sampleChrome("vision", "tasks"), DisplayName: "Vision", SubmitURL: "/teams/vision/submit", MaySubmit: true,
		Facts: []views.ValueLine{{Name: "Namespace", Value: "hyperpod-ns-vision"}}, Notice: views.TaskLink{"train", "/tasks/hyperpod-ns-vision/job/train"},
	}
}

func sampleSubmitPage() teamviews.SubmitPage {
	form := sampleSubmit()
	return teamviews.SubmitPage{Chrome: sampleChrome("Submit a task", "teams"), Team: "vision", TeamURL: "/teams/vision", ManifestURL: "/teams/vision/manifest", Form: &form}
}

func TestTeamPages(t *testing.T) {
	reader, untouched := sampleSubmitPage(), sampleSubmitPage()
	reader.Form, reader.NoForm, reader.Manifests = nil, "You may not submit here.", sampleManifests()
	untouched.Form = &teamviews.SubmitForm{Action: "/teams/vision/submit", Unit: "Accelerators"}
	hostileTeam, hostileSubmit, hostileServing := sampleTeam(), sampleSubmitPage(), sampleServing(true)
	s := hostileServing.Form.Serving
	s.Kind, s.Port.Value, s.Home.Value, s.HomePath.Error, s.DefaultHomePath, hostileServing.Kinds[0].Label = hostile, hostile, hostile, hostile, hostile, hostile
	f := hostileSubmit.Form
	for _, s := range []*string{
		&hostileTeam.DisplayName, &hostileTeam.Facts[0].Value, &hostileTeam.Notice.Name, &hostileSubmit.Team, &f.RequestID, &f.Failure, &f.Errors[0].Text, &f.Name.Value, &f.Name.Error, &f.Class.Options[1].Label,
		&f.Pool.Options[1].Value, &f.Unit, &f.NodeCapacity, &f.Partitions[0], &f.Command.Value, &f.Env.Value, &f.Secrets.Error, &f.Verdict.Headline, &f.Verdict.Growth, &f.Sizes.Value, &f.Max.Error, &f.Verdict.Tone, &f.Verdict.Notes[0], &f.Verdict.Steps[0].Text, &f.Manifests.Sources[0].Text, &f.Manifests.Lead,
	} {
		*s = hostile
	}
	for name, page := range map[string]templ.Component{
		"team": teamviews.Team(sampleTeam()), "hostile team": teamviews.Team(hostileTeam),
		"everything wrong": teamviews.Submit(sampleSubmitPage()), "as a reader": teamviews.Submit(reader), "untouched": teamviews.Submit(untouched), "hostile": teamviews.Submit(hostileSubmit),
		"a service, wrong": teamviews.Submit(sampleServing(false)), "a notebook, wrong": teamviews.Submit(sampleServing(true)), "hostile service": teamviews.Submit(hostileServing),
	} {
		t.Run(name, func(t *testing.T) {
			doc := htmlcheck.Render(t, page)
			htmlcheck.Page(t, doc)
			if doc.Find("script:not([src]), img").Length() > 0 {
				t.Error("a text became an element")
			}
		})
	}
	doc := htmlcheck.Render(t, teamviews.SubmitFormBody(sampleSubmit()))
	htmlcheck.Fragment(t, doc)
	if top := doc.Find("body").Children(); top.Length() != 1 || top.AttrOr("id", "") != "submit-form" {
		t.Error("the fragment is not the form")
	}
}
