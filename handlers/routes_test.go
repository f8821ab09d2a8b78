package handlers_test

import (
	"testing"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/web/webtest"
)

// A new route is added here, with its access.
func TestRoutes(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "hidden-task", Namespace: "hidden-namespace", State: tasks.Running}, Team: "hidden-team"}}}
	h := d.Handlers()
	h.ClusterName = "hidden-cluster"
	console := webtest.Start(t, webtest.Setup{
		Register: h.Register,
		Chrome:   h.Chrome,
	})
	webtest.CheckRoutes(t, console, map[string]webtest.Access{
		"GET /static/*": webtest.Public, "HEAD /static/*": webtest.Public,
		"GET /healthz": webtest.Public, "HEAD /healthz": webtest.Public,
		"GET /readyz": webtest.Public, "HEAD /readyz": webtest.Public,
		"GET /auth/login": webtest.Public, "GET /auth/callback": webtest.Public, "POST /auth/logout": webtest.Public,
		"GET /auth/signed-out": webtest.Public, "HEAD /auth/signed-out": webtest.Public,
		"GET /auth/command-line.json": webtest.Public, "HEAD /auth/command-line.json": webtest.Public,
		"GET /api/openapi.json": webtest.SignedIn, "HEAD /api/openapi.json": webtest.SignedIn,
		"GET /auth/session": webtest.SignedIn, "GET /auth/signed-in": webtest.SignedIn, "HEAD /auth/signed-in": webtest.SignedIn,
		"GET /": webtest.SignedIn, "HEAD /": webtest.SignedIn, "GET /events/dashboard": webtest.SignedIn, "GET /events": webtest.SignedIn,
		"GET /teams": webtest.SignedIn, "HEAD /teams": webtest.SignedIn, "GET /events/teams": webtest.SignedIn,
		"GET /export.zip":   webtest.SignedIn,
		"GET /capacity.csv": webtest.SignedIn, "HEAD /capacity.csv": webtest.SignedIn, "GET /teams.csv": webtest.SignedIn, "HEAD /teams.csv": webtest.SignedIn,
		"GET /classes.csv": webtest.SignedIn, "HEAD /classes.csv": webtest.SignedIn, "GET /hardware.csv": webtest.SignedIn, "HEAD /hardware.csv": webtest.SignedIn,
		"GET /tasks": webtest.SignedIn, "HEAD /tasks": webtest.SignedIn, "GET /tasks/events": webtest.SignedIn,
		"GET /tasks.csv": webtest.SignedIn, "HEAD /tasks.csv": webtest.SignedIn,
		"GET /queue": webtest.SignedIn, "HEAD /queue": webtest.SignedIn, "GET /queue/events": webtest.SignedIn,
		"GET /queue.csv": webtest.SignedIn, "HEAD /queue.csv": webtest.SignedIn, "GET /queue.json": webtest.SignedIn, "HEAD /queue.json": webtest.SignedIn,
		"GET /tasks/past": webtest.SignedIn, "HEAD /tasks/past": webtest.SignedIn, "GET /tasks/past.csv": webtest.SignedIn, "HEAD /tasks/past.csv": webtest.SignedIn,
		"GET /usage": webtest.SignedIn, "HEAD /usage": webtest.SignedIn, "GET /usage.csv": webtest.SignedIn, "HEAD /usage.csv": webtest.SignedIn, "GET /usage.json": webtest.SignedIn, "HEAD /usage.json": webtest.SignedIn,
		"GET /activity": webtest.SignedIn, "HEAD /activity": webtest.SignedIn, "GET /activity.csv": webtest.SignedIn, "HEAD /activity.csv": webtest.SignedIn,
		"GET /alerts": webtest.SignedIn, "HEAD /alerts": webtest.SignedIn, "POST /alerts": webtest.SignedIn, "GET /alerts/events": webtest.SignedIn,
		"GET /notices": webtest.SignedIn, "HEAD /notices": webtest.SignedIn, "POST /notices": webtest.SignedIn,
		"GET /alerts.csv": webtest.SignedIn, "HEAD /alerts.csv": webtest.SignedIn, "GET /alerts.json": webtest.SignedIn, "HEAD /alerts.json": webtest.SignedIn,
		"GET /tasks.json": webtest.SignedIn, "HEAD /tasks.json": webtest.SignedIn,
		"GET /teams.json": webtest.SignedIn, "HEAD /teams.json": webtest.SignedIn,
		"GET /activity.json": webtest.SignedIn, "HEAD /activity.json": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/why.json": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/why.json": webtest.SignedIn,
		"GET /instances": webtest.SignedIn, "HEAD /instances": webtest.SignedIn, "GET /instances/events": webtest.SignedIn,
		"GET /instances.csv": webtest.SignedIn, "HEAD /instances.csv": webtest.SignedIn,
		"GET /teams/:team/events": webtest.SignedIn, "GET /teams/:team/usage.csv": webtest.SignedIn, "HEAD /teams/:team/usage.csv": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name": webtest.SignedIn, "GET /tasks/:namespace/:kind/:name/events": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/scaling.csv": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/scaling.csv": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/logs": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/logs": webtest.SignedIn, "GET /tasks/:namespace/:kind/:name/logs/events": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/logs/download": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/yaml":          webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/yaml": webtest.SignedIn,
		"GET /teams/:team": webtest.SignedIn, "HEAD /teams/:team": webtest.SignedIn,
		"GET /teams/:team/submit/service": webtest.SignedIn, "HEAD /teams/:team/submit/service": webtest.SignedIn, "POST /teams/:team/submit/service": webtest.SignedIn,
		"GET /teams/:team/submit/notebook": webtest.SignedIn, "HEAD /teams/:team/submit/notebook": webtest.SignedIn, "POST /teams/:team/submit/notebook": webtest.SignedIn,
		"GET /teams/:team/submit": webtest.SignedIn, "HEAD /teams/:team/submit": webtest.SignedIn, "POST /teams/:team/submit": webtest.SignedIn,
		"GET /teams/:team/templates": webtest.SignedIn, "HEAD /teams/:team/templates": webtest.SignedIn, "POST /teams/:team/templates": webtest.SignedIn,
		"GET /teams/:team/again": webtest.SignedIn, "HEAD /teams/:team/again": webtest.SignedIn,
		"GET /teams/:team/manifest": webtest.SignedIn, "HEAD /teams/:team/manifest": webtest.SignedIn, "POST /teams/:team/manifest": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/scale": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/scale": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/scale": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/stop": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/stop": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/stop": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/resume": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/resume": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/resume": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/front": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/front": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/front": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/class": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/class": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/class": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/resize": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/resize": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/resize": webtest.SignedIn,
		"GET /tasks/:namespace/:kind/:name/delete": webtest.SignedIn, "HEAD /tasks/:namespace/:kind/:name/delete": webtest.SignedIn, "POST /tasks/:namespace/:kind/:name/delete": webtest.SignedIn,
		"GET /policies/allocations/:name/hold": webtest.SignedIn, "HEAD /policies/allocations/:name/hold": webtest.SignedIn, "POST /policies/allocations/:name/hold": webtest.SignedIn,
		"GET /policies/allocations/:name/resume": webtest.SignedIn, "HEAD /policies/allocations/:name/resume": webtest.SignedIn, "POST /policies/allocations/:name/resume": webtest.SignedIn,
		"GET /settings": webtest.SignedIn, "HEAD /settings": webtest.SignedIn,
		"GET /settings/replays/:replay": webtest.SignedIn, "HEAD /settings/replays/:replay": webtest.SignedIn,
		"GET /policies/many": webtest.SignedIn, "HEAD /policies/many": webtest.SignedIn, "POST /policies/many": webtest.SignedIn,
		"GET /policies.csv": webtest.SignedIn, "HEAD /policies.csv": webtest.SignedIn, "GET /policies.json": webtest.SignedIn, "HEAD /policies.json": webtest.SignedIn,
		"GET /policies": webtest.SignedIn, "HEAD /policies": webtest.SignedIn, "GET /policies/events": webtest.SignedIn,
		"GET /policies/cluster/edit/review": webtest.SignedIn, "HEAD /policies/cluster/edit/review": webtest.SignedIn,
		"GET /policies/allocations/new/review": webtest.SignedIn, "HEAD /policies/allocations/new/review": webtest.SignedIn,
		"GET /policies/allocations/:name/edit/review": webtest.SignedIn, "HEAD /policies/allocations/:name/edit/review": webtest.SignedIn,
		"GET /policies/cluster/edit/review/events": webtest.SignedIn, "GET /policies/allocations/new/review/events": webtest.SignedIn, "GET /policies/allocations/:name/edit/review/events": webtest.SignedIn,
		"GET /policies/allocations/:name/hold/events": webtest.SignedIn, "GET /policies/allocations/:name/resume/events": webtest.SignedIn, "GET /policies/allocations/:name/delete/events": webtest.SignedIn,
		"GET /policies/cluster/try-again": webtest.SignedIn, "HEAD /policies/cluster/try-again": webtest.SignedIn, "POST /policies/cluster/try-again": webtest.SignedIn,
		"GET /policies/cluster/edit": webtest.SignedIn, "HEAD /policies/cluster/edit": webtest.SignedIn, "POST /policies/cluster/edit": webtest.SignedIn,
		"GET /instances/pools": webtest.SignedIn, "HEAD /instances/pools": webtest.SignedIn, "POST /instances/pools": webtest.SignedIn,
		"GET /instances/pools/review": webtest.SignedIn, "HEAD /instances/pools/review": webtest.SignedIn, "GET /instances/pools/review/events": webtest.SignedIn,
		"GET /usage/prices": webtest.SignedIn, "HEAD /usage/prices": webtest.SignedIn, "POST /usage/prices": webtest.SignedIn,
		"GET /usage/prices/review": webtest.SignedIn, "HEAD /usage/prices/review": webtest.SignedIn, "GET /usage/prices/review/events": webtest.SignedIn,
		"GET /alerts/rules": webtest.SignedIn, "HEAD /alerts/rules": webtest.SignedIn, "POST /alerts/rules": webtest.SignedIn,
		"GET /alerts/rules/review": webtest.SignedIn, "HEAD /alerts/rules/review": webtest.SignedIn, "GET /alerts/rules/review/events": webtest.SignedIn,
		"GET /tasks/many": webtest.SignedIn, "HEAD /tasks/many": webtest.SignedIn, "POST /tasks/many": webtest.SignedIn,
		"GET /bulk/:id": webtest.SignedIn, "HEAD /bulk/:id": webtest.SignedIn, "GET /bulk/:id/events": webtest.SignedIn,
		"GET /policies/adopt": webtest.SignedIn, "HEAD /policies/adopt": webtest.SignedIn, "POST /policies/adopt": webtest.SignedIn,
		"GET /policies/import": webtest.SignedIn, "HEAD /policies/import": webtest.SignedIn, "POST /policies/import": webtest.SignedIn,
		"GET /policies/cluster/yaml": webtest.SignedIn, "HEAD /policies/cluster/yaml": webtest.SignedIn,
		"GET /policies/allocations/:name/yaml": webtest.SignedIn, "HEAD /policies/allocations/:name/yaml": webtest.SignedIn,
		"GET /policies/allocations/new": webtest.SignedIn, "HEAD /policies/allocations/new": webtest.SignedIn, "POST /policies/allocations/new": webtest.SignedIn,
		"GET /policies/allocations/:name": webtest.SignedIn, "HEAD /policies/allocations/:name": webtest.SignedIn, "GET /policies/allocations/:name/events": webtest.SignedIn,
		"GET /policies/allocations/:name/revisions": webtest.SignedIn, "HEAD /policies/allocations/:name/revisions": webtest.SignedIn,
		"GET /policies/allocations/:name/revisions/:n": webtest.SignedIn, "HEAD /policies/allocations/:name/revisions/:n": webtest.SignedIn,
		"GET /policies/cluster/revisions": webtest.SignedIn, "HEAD /policies/cluster/revisions": webtest.SignedIn,
		"GET /policies/cluster/revisions/:n": webtest.SignedIn, "HEAD /policies/cluster/revisions/:n": webtest.SignedIn,
		"GET /policies/allocations/:name/edit": webtest.SignedIn, "HEAD /policies/allocations/:name/edit": webtest.SignedIn, "POST /policies/allocations/:name/edit": webtest.SignedIn,
		"GET /policies/allocations/:name/delete": webtest.SignedIn, "HEAD /policies/allocations/:name/delete": webtest.SignedIn, "POST /policies/allocations/:name/delete": webtest.SignedIn,
		webtest.Unknown: webtest.SignedIn,
	}, "hidden-", "ml.g6.12xlarge", "Compute allocations", "Cluster policy", "cluster policy")
}
