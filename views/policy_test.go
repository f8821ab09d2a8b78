package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/views/htmlcheck"
	policyviews "kuota.dev/kuota/views/policy"
)

func samplePolicyCard() *views.PolicyCard {
	return &views.PolicyCard{
		Exists: true, MayEdit: true, EditURL: "/policies/cluster/edit",
		Status:   views.Status{Tone: "wait", Label: "Applying"},
		Progress: &views.PolicyProgress{Text: "Re-ranking: 80 of 120 tasks have their new priority", Done: 80, Tasks: 120},
		Patch:    "waitForPodsReady:\n  enable: true", PatchReason: "Kueue does not match the policy.",
		Parts: []views.PolicyPart{
			{ID: "prioritization", Label: "Task prioritization", Value: "By priority class", Text: "The highest weight starts first.",
				Classes: []views.ClassLine{{Name: "inference", Weight: "90", Description: "Serves users", Object: "inference-priority"}, {Name: "training", Weight: "60", Description: "", Object: "training-priority"}}, Status: views.Status{Tone: "wait", Label: "Re-ranking"}},
			{ID: "idle", Label: "Idle compute", Value: "Fair share", Status: views.Status{Tone: "bad", Label: "Not active", Text: "Kueue's configuration differs."}},
			{ID: "enforcement", Label: "Enforcement", Value: "Require a queue"},
			{ID: "pools", Label: "Pools", Value: "1 pool", Pools: []views.PoolLine{{"h100", "All H100 nodes", "2 nodes"}}, Status: views.Status{Tone: "ok", Label: "Active"}},
		},
	}
}

// samplePolicyForm returns a form with a valid and an invalid row of each kind, and
// every other error.
func samplePolicyForm() policyviews.PolicyForm {
	bad := func(value string) views.TextField { return views.TextField{Value: value, Error: "This is wrong."} }
	cell := func(part string, field views.TextField) policyviews.Cell {
		return policyviews.Cell{Part: part, Label: part, TextField: field}
	}
	match := func(chosen, problem string) policyviews.Cell {
		return policyviews.Cell{Part: "match", Label: "Nodes with", TextField: views.TextField{Error: problem}, Options: []views.Option{{Value: "", Label: "None"}, {Value: chosen, Label: chosen, Selected: true}}}
	}
	wrong := func(value string) policyviews.Choice { return policyviews.Choice{Value: value, Error: "Choose one."} }
	return policyviews.PolicyForm{SaveText: "Save policy", Simulated: true,
		Chrome: sampleChrome("Edit cluster policy", "policies"), UpLabel: "Policies", Action: "/policies/cluster/edit", CancelURL: "/policies", Parts: []string{"pools", "prices", "alerts"},
		Version: "7", Submitted: true, Resumed: true, Failure: "The cluster does not answer.", Drop: []string{"old"},
		Errors: []views.Message{
			{Field: "class-1-weight", Label: "Class 2, weight", Text: "This is wrong."}, {Field: "classes", Label: "Priority classes", Text: "Too many."},
			{Field: "gang-timeout", Label: "Start within", Text: "This is wrong."}, {Field: "prioritization", Label: "Task prioritization", Text: "Choose one."},
			{Field: "pools", Label: "Pools", Text: "Too many."}, {Text: "This belongs to no field."},
		},
		Prioritization: wrong("TaskRanking"), Classless: "Now: 3 unfinished tasks.",
		Cluster: true, More: "gang scheduling", MoreOpen: true,
		Classes: policyviews.RowList{Kind: "class", ID: "classes", Label: "Priority classes", Row: "Class", First: "name", Add: "Add priority class", Error: "Too many.", Rows: []policyviews.Row{
			{
				Cells:     []policyviews.Cell{cell("name", views.TextField{Value: "inference"}), cell("weight", views.TextField{Value: "90"}), cell("description", views.TextField{Value: "Serves users"})},
				RestTitle: "Time limit: 24h by default", Rest: []policyviews.Cell{cell("limit", views.TextField{Value: "24h"}), cell("longest", views.TextField{Value: "72h"})},
				Notes: []string{"12 unfinished tasks with this class."},
			},
			{
				Cells:     []policyviews.Cell{cell("name", bad("Up")), cell("weight", bad("x")), cell("description", bad("y"))},
				RestTitle: "Time limit", Rest: []policyviews.Cell{cell("limit", bad("5")), cell("longest", bad("soon"))}, Error: "The row is wrong.",
			},
		}},
		Idle: wrong("FairShare"), Share: true,
		Gang: true, Timeout: bad("5"), Recovery: bad("0s"), Block: true, RequeueOrder: wrong("Creation"),
		RequeueLimit: bad("x"), RequeueBase: bad("x"), RequeueMax: bad("x"), PreemptionLoops: wrong("Warn"), Enforcement: wrong("None"),
		Pools: &policyviews.RowList{Kind: "pool", ID: "pools", Label: "Pools", Row: "Pool", First: "name", Add: "Add pool", Error: "Too many.", Rows: []policyviews.Row{
			{Cells: []policyviews.Cell{cell("name", views.TextField{Value: "h100"}), match("accelerator", ""), cell("value", views.TextField{Value: "H100"})}, Notes: []string{"2 nodes now."}},
			{Cells: []policyviews.Cell{cell("name", bad("Up")), match("labels", ""), cell("value", bad("zone"))}, Error: "The row is wrong."},
		}},
		Prices: &policyviews.RowList{Kind: "price", ID: "prices", Label: "Prices", Row: "Price", First: "pool", Add: "Add price", Rows: []policyviews.Row{
			{Cells: []policyviews.Cell{match("h100", "This is wrong."), cell("own", bad("2,50"))}},
		}},
		Rules: []policyviews.RuleRow{{Name: "task-waits", Title: "Tasks wait for long", Meaning: "A task waits.", On: true, Limit: bad("5"), Usual: "4h"}, {Name: "budget", Title: "A budget is used", Meaning: "A team has used it."}},
		ClassRules: policyviews.RowList{Kind: "rule", ID: "class-rules", Label: "Classes", Row: "Class", First: "class", From: 2, Add: "Add class", Rows: []policyviews.Row{
			{Cells: []policyviews.Cell{match("inference", ""), {Part: "on", Label: "Alert", Check: true}, cell("limit", views.TextField{Value: "10m"})}},
		}},
		Receivers:   &policyviews.RowList{Kind: "receiver", ID: "receivers", Label: "Receivers", Row: "Receiver", First: "name", Full: "The policy has the maximum number of receivers."},
		Suggestions: []policyviews.Suggestions{{ID: "pool-accelerator", Values: []string{"H100"}}, {ID: "secret-names"}},
	}
}

func samplePolicyReview() policyviews.PolicyReview {
	return policyviews.PolicyReview{
		Chrome: sampleChrome("Review cluster policy", "policies"), Action: "/policies/cluster/edit", CancelURL: "/policies",
		Fields: []views.HiddenField{{"class-0-name", "inference"}}, Incomplete: "Kueue does not answer.", UpLabel: "Policies",
		Warnings: []views.Message{{Label: "Price 1, pool", Text: "There is no pool h200 now."}},
		Settings: []views.ValueChange{{"Idle compute", "Fair share", "First come, first served"}},
		Classes: []policyviews.ReviewClass{
			{Name: "inference", Before: "90", After: "80", Tasks: "12 tasks"},
			{Name: "old", Before: "10", Tasks: "5 tasks", Drop: "It stays otherwise.", Dropped: true},
		},
		Pools:  []views.ValueChange{{"h100", "no node", "2 nodes: ml.p5.48xlarge"}},
		Rerank: "12 tasks get their new priority.", Restart: true, Patch: "enable: true",
		Objects: []views.ObjectLine{{ID: "object-0", Tone: "wait", Action: "changed", Name: "WorkloadPriorityClass inference-priority", Fields: []views.ValueChange{{"value", "90", "80"}}}},
	}
}

func TestPolicyPagesAreSound(t *testing.T) {
	policies, none, noneToMake, unseen := samplePolicies(), samplePolicies(), samplePolicies(), samplePolicies()
	policies.Policy, none.Policy, noneToMake.Policy = samplePolicyCard(), &views.PolicyCard{}, &views.PolicyCard{MayEdit: true, EditURL: "/edit"}
	deleted, same := sampleConflict(), sampleConflict()
	deleted.Deleted, same.Lines = true, nil
	for name, page := range map[string]templ.Component{
		"card": allocationviews.Policies(policies), "no policy": allocationviews.Policies(none), "no policy, as admin": allocationviews.Policies(noneToMake), "not to be seen": allocationviews.Policies(unseen),
		"form, new":              policyviews.EditPolicy(policyviews.PolicyForm{SaveText: "Save policy", Simulated: true, Chrome: sampleChrome("Create", "policies"), Cluster: true, Classes: policyviews.RowList{Kind: "class", ID: "classes", Label: "Priority classes", Add: "Add priority class", NoteID: "classes-note"}}),
		"form of prices":         policyviews.EditPolicy(policyviews.PolicyForm{Chrome: sampleChrome("Edit prices", "usage"), SaveText: "Save prices", Prices: &policyviews.RowList{Kind: "price", ID: "prices", Label: "Prices", Add: "Add price", NoteID: "prices-note", Empty: "No prices."}}),
		"form without a policy":  policyviews.EditPolicy(policyviews.PolicyForm{Chrome: sampleChrome("Edit prices", "usage"), NoPolicy: true, CreateURL: "/policies/cluster/edit"}),
		"form, everything wrong": policyviews.EditPolicy(samplePolicyForm()),
		"review":                 policyviews.ReviewPolicy(samplePolicyReview()),
		"review of nothing":      policyviews.ReviewPolicy(policyviews.PolicyReview{Chrome: sampleChrome("Review", "policies"), Unchanged: true}),
		"conflict, deleted":      views.ConflictPage(deleted), "conflict of equal values": views.ConflictPage(same),
	} {
		t.Run(name, func(t *testing.T) { htmlcheck.Page(t, htmlcheck.Render(t, page)) })
	}
	for id, fragment := range map[string]templ.Component{"policy-form": policyviews.PolicyFormBody(samplePolicyForm()), "cluster-policy": views.ClusterPolicyCard(nil)} {
		doc := htmlcheck.Render(t, fragment)
		htmlcheck.Fragment(t, doc)
		if top := doc.Find("body").Children(); top.Length() != 1 || top.AttrOr("id", "") != id {
			t.Errorf("fragment %s is %d elements", id, top.Length())
		}
	}
}

func TestPolicyFormPostsByItself(t *testing.T) {
	form := htmlcheck.Render(t, policyviews.PolicyFormBody(samplePolicyForm())).Find("form")
	if first := form.Find("button").First(); first.AttrOr("value", "") != "review" {
		t.Error("the Enter key does not lead to the review")
	}
	actions := form.Find("button[name=action][type=submit]").Map(func(_ int, b *goquery.Selection) string { return b.AttrOr("value", "") })
	for _, want := range []string{"review", "preview", "add-class", "remove-class:0", "remove-class:1", "add-pool", "remove-pool:0", "remove-pool:1", "add-price", "remove-rule:2"} {
		if !slices.Contains(actions, want) {
			t.Errorf("no button with the action %s", want)
		}
	}
	if slices.Contains(actions, "save") {
		t.Error("the policy can be saved unseen")
	}
	for selector, want := range map[string]string{
		"[name=resource-version]": "7", "[name=submitted]": "true", "[name=drop]": "old", "[name=as]": "ada@example.com",
		"#class-0-name": "inference", "#class-0-limit": "24h", "#class-0-longest": "72h", "#class-1-weight": "x", "#gang-timeout": "5", "#requeue-most": "x", "#pool-1-value": "zone",
		"#pool-1-match option[selected]": "labels", "#prioritization-TaskRanking[checked]": "TaskRanking", "#requeue-order-Creation[checked]": "Creation",
		"#share-unallocated[checked]": "true", "#gang[checked]": "true", "#gang-block[checked]": "true",
	} {
		if got, there := form.Find(selector).Attr("value"); !there || got != want {
			t.Errorf("%s has %q, want %q", selector, got, want)
		}
	}
	if parts := form.Find("[name=part]").Map(func(_ int, p *goquery.Selection) string { return p.AttrOr("value", "") }); !slices.Equal(parts, []string{"pools", "prices", "alerts"}) {
		t.Errorf("the form carries the parts %q", parts)
	}
	if n := form.Find("[disabled]").Length(); n != 0 {
		t.Errorf("%d inputs are disabled: what was typed would not be sent", n)
	}
}

func TestPolicyFormErrorsAreNextToTheirInputs(t *testing.T) {
	doc := htmlcheck.Render(t, policyviews.PolicyFormBody(samplePolicyForm()))
	for _, id := range []string{"class-1-name", "class-1-weight", "class-1-limit", "class-1-longest", "class-1-description", "gang-timeout", "gang-recovery", "requeue-limit", "requeue-base", "requeue-most", "pool-1-name", "pool-1-value"} {
		if doc.Find("#"+id).AttrOr("aria-invalid", "") != "true" || !strings.Contains(doc.Find("#"+id+"-error").Text(), "This is wrong.") {
			t.Errorf("input %s is not told to be wrong", id)
		}
	}
	for _, id := range []string{"prioritization", "idle", "requeue-order", "preemption-loops", "enforcement", "classes", "pools", "class-1", "pool-1"} {
		if doc.Find("#"+id+"-error").Text() == "" {
			t.Errorf("%s has no error", id)
		}
	}
	if n := doc.Find("#class-0 [aria-invalid], #pool-0 [aria-invalid]").Length(); n != 0 {
		t.Errorf("%d right inputs are marked wrong", n)
	}
}

// Priority classes are kept under first-come ordering, and the form shows that they
// have no effect.
func TestClassesWithoutEffect(t *testing.T) {
	form := samplePolicyForm()
	if text := htmlcheck.Render(t, policyviews.PolicyFormBody(form)).Find("#classes-note").Text(); strings.Contains(text, "have no effect") {
		t.Errorf("ranked classes are said to be %q", text)
	}
	form.Prioritization.Value, form.Gang = "FirstComeFirstServe", false
	doc := htmlcheck.Render(t, policyviews.PolicyFormBody(form))
	if text := doc.Find("#classes-note").Text(); !strings.Contains(text, "have no effect") || doc.Find("#class-0-name").Length() != 1 {
		t.Errorf("classes are said to be %q", text)
	}
	if doc.Find(".is-off #gang-timeout").Length() != 1 {
		t.Error("times look used while gang scheduling is off")
	}
}

func TestPolicyCardShowsState(t *testing.T) {
	doc := htmlcheck.Render(t, views.ClusterPolicyCard(samplePolicyCard()))
	for selector, want := range map[string]string{
		"#policy-prioritization .policy-list li:first-child": "inference", "#policy-idle .policy-state": "Not active", "#policy-idle": "configuration differs",
		"#policy-pools": "All H100 nodes", "#policy-progress": "80 of 120", "#policy-patch": "Kueue does not match the policy", "#policy-patch-text": "enable: true",
		".card-head": "Applying",
	} {
		if text := doc.Find(selector).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", selector, text, want)
		}
	}
	if bar := doc.Find("progress"); bar.AttrOr("max", "") != "120" || bar.AttrOr("value", "") != "80" {
		t.Error("the progress is not drawn")
	}
	card := samplePolicyCard()
	card.MayEdit = false
	doc = htmlcheck.Render(t, views.ClusterPolicyCard(card))
	if doc.Find("a.btn, #policy-patch-text").Length() != 0 {
		t.Error("a reader is asked to change something")
	}
	if text := htmlcheck.Render(t, views.ClusterPolicyCard(&views.PolicyCard{})).Text(); !strings.Contains(text, "no priority classes") || strings.Contains(text, "Create policy") {
		t.Errorf("without a policy a reader is told %q", text)
	}
}

func TestHostilePolicyStaysText(t *testing.T) {
	card := samplePolicyCard()
	for _, s := range []*string{&card.Patch, &card.Progress.Text, &card.Parts[0].Classes[0].Description, &card.Parts[1].Status.Text, &card.Parts[3].Pools[0].Match} {
		*s = hostile
	}
	policies := samplePolicies()
	policies.Policy = card
	form := samplePolicyForm()
	for _, s := range []*string{&form.Version, &form.Drop[0], &form.Classes.Rows[0].Cells[0].Value, &form.Classes.Rows[0].RestTitle, &form.Pools.Rows[0].Cells[1].Options[1].Label, &form.Pools.Rows[0].Cells[2].Value, &form.Pools.Rows[0].Notes[0]} {
		*s = hostile
	}
	review := samplePolicyReview()
	for _, s := range []*string{&review.Fields[0].Name, &review.Fields[0].Value, &review.Settings[0].After, &review.Patch, &review.Objects[0].Name, &review.Rerank} {
		*s = hostile
	}
	for name, page := range map[string]templ.Component{"card": allocationviews.Policies(policies), "form": policyviews.EditPolicy(form), "review": policyviews.ReviewPolicy(review)} {
		t.Run(name, func(t *testing.T) {
			doc := htmlcheck.Render(t, page)
			htmlcheck.Page(t, doc)
			if doc.Find("img").Length() > 0 || doc.Find("script:not([src])").Length() > 0 {
				t.Error("a hostile string became markup")
			}
		})
	}
}
