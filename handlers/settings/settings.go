package settings

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	settingsviews "kuota.dev/kuota/views/settings"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Setup describes how the console was started. It contains no secrets.
type Setup struct {
	Version   string // of the console
	Revision  string // the commit that the console was built from
	Namespace string // its own
	Issuer    string // host of the OIDC issuer; empty without sign-in
	ClientID  string // of the console at the issuer
	UserClaim string // the claim that names a user
	Database  string // database of history, such as SQLite
}

// settings answers GET /settings: configuration, versions, and what is missing.
func (h *Pages) settings(c echo.Context) error {
	state, err := h.Settings.Report(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	page := settingsviews.SettingsPage{Chrome: h.Chrome(c), Config: state.Kueue.Text, Args: strings.Join(state.Kueue.Args, "\n")}
	page.Title, page.Active = "Settings", "settings"
	page.Chrome.Settings = urls.Settings
	for _, gap := range state.Findings {
		page.Problems = append(page.Problems, settingsviews.SettingsProblem{ID: gap.ID, Status: gapStatus(gap), Consequence: gap.Impact, Patch: gap.Fix})
	}
	if problem, ok := h.refused(c.Request().Context()); ok {
		page.Problems = append(page.Problems, problem)
	}
	page.Replays = h.replayLinks()
	page.Cards = []settingsviews.SettingsCard{h.clusterCard(state), kueueCard(state), h.consoleCard(state), h.signInCard(), kindsCard(state)}
	return web.Render(c, http.StatusOK, settingsviews.Settings(page))
}

func gapStatus(gap diagnostics.Finding) views.Status {
	switch gap.Severity {
	case diagnostics.SeverityError:
		return views.Status{Tone: "bad", Label: "Not working", Text: gap.Title}
	case diagnostics.SeverityWarning:
		return views.Status{Tone: "wait", Label: "Degraded", Text: gap.Title}
	}
	return views.Status{Tone: "info", Label: "Note", Text: gap.Title}
}

const notKnown = "unknown"

func (h *Pages) clusterCard(state diagnostics.Report) settingsviews.SettingsCard {
	card := settingsviews.SettingsCard{ID: "settings-cluster", Title: "Cluster", Lines: []views.ValueLine{
		{Name: "Name", Value: h.ClusterName},
		{Name: "Kubernetes", Value: cmp.Or(state.Server, notKnown)},
		{Name: "Nodes", Value: notKnown},
		{Name: "Pools", Value: notKnown},
	}}
	if state.NodesCounted {
		card.Lines[2].Value, card.Lines[3].Value = format.Thousands(int64(state.Nodes)), format.Thousands(int64(state.Pools))
	}
	return card
}

func kueueCard(state diagnostics.Report) settingsviews.SettingsCard {
	card := settingsviews.SettingsCard{ID: "settings-kueue", Title: "Kueue"}
	line := func(name, value string) { card.Lines = append(card.Lines, views.ValueLine{Name: name, Value: value}) }
	kinds := "all installed"
	switch {
	case !state.Missing.Discovered:
		kinds = notKnown
	case len(state.Missing.KueueVersions) > 0:
		kinds = "in " + strings.Join(state.Missing.KueueVersions, ", ") + " only"
	case len(state.Missing.Kueue) > 0:
		kinds = "missing: " + strings.Join(state.Missing.Kueue, ", ")
	}
	line("Version", cmp.Or(state.Version, notKnown))
	line("CRDs", kinds)
	if state.KueueRead != diagnostics.ReadSucceeded {
		line("Configuration", "cannot be read")
		return card
	}
	line("Image", format.OrDash(state.Kueue.Image))
	line("Service account", format.OrDash(state.Kueue.Account))
	line("Integrations", strings.Join(state.Integrations, ", "))
	line("Visibility API", answers(state.Visibility))
	for _, gate := range state.Gates {
		if gate.Supported || gate.Explicit {
			line(gate.Name, gateWords(gate))
		}
	}
	return card
}

// kindsCard has the kinds of jobs that are used in some way, and what they lack.
func kindsCard(state diagnostics.Report) settingsviews.SettingsCard {
	card := settingsviews.SettingsCard{ID: "settings-kinds", Title: "Kinds of jobs"}
	for _, k := range state.Kinds {
		builtIn := k.Group == "batch" || k.Group == "apps" || k.Group == v1alpha1.GroupVersion.Group
		if k.Installed == diagnostics.Yes && !builtIn || k.Integrated == diagnostics.Yes || k.Allowed == diagnostics.Yes {
			card.Lines = append(card.Lines, views.ValueLine{Name: k.Kind, Value: kindWords(k)})
		}
	}
	return card
}

func kindWords(k diagnostics.KindState) string {
	if k.Usable() {
		return "installed, managed by Kueue; members may create it"
	}
	words := func(answer diagnostics.Answer, yes, no, unknown string) string {
		return map[diagnostics.Answer]string{diagnostics.Yes: yes, diagnostics.No: no, diagnostics.Unknown: unknown}[answer]
	}
	return strings.Join([]string{
		words(k.Installed, "installed", "not installed: its operator is missing", "not known whether installed"),
		words(k.Integrated, "managed by Kueue", "not managed by Kueue: add "+k.Framework+" to integrations.frameworks", "not known whether Kueue manages it"),
		words(k.Allowed, "members may create it", "members may not create it", "not known whether members may create it"),
	}, "; ")
}

func answers(yes bool) string {
	if yes {
		return "answers"
	}
	return "does not answer"
}

func gateWords(gate kueueconfig.Gate) string {
	words := "off"
	if gate.Enabled {
		words = "on"
	}
	if !gate.Explicit {
		words += ", by default"
	}
	return words
}

func (h *Pages) consoleCard(state diagnostics.Report) settingsviews.SettingsCard {
	return settingsviews.SettingsCard{ID: "settings-console", Title: "Console", Lines: []views.ValueLine{
		{Name: "Version", Value: cmp.Or(h.Setup.Version, notKnown)},
		{Name: "Revision", Value: cmp.Or(h.Setup.Revision, notKnown)},
		{Name: "Namespace", Value: format.OrDash(h.Setup.Namespace)},
		{Name: "Kueue's configuration", Value: manageWords(state)},
		{Name: "Jobs without a queue", Value: policiesWords(state.Enforcement, state.PoliciesKnown, "rejected where the policy requires a queue")},
		{Name: "Member permissions", Value: policiesWords(state.Members, state.PoliciesKnown, "restricted as described in docs/privileges.md")},
		{Name: "Admins of departments", Value: policiesWords(state.Departments, state.PoliciesKnown, "limited to their departments")},
		{Name: "Author of changes", Value: policyWords(state.ChangedBy, "recorded by the API server", "not recorded")},
		{Name: "Default time limits", Value: policyWords(state.TimeLimits, "set by the API server", "set by this console's submit page only; time limits are only checked")},
		{Name: "Leader", Value: h.leaderWords()},
		{Name: "History", Value: h.historyWords()},
	}}
}

// refused describes records that the history database refused; false for none.
func (h *Pages) refused(ctx context.Context) (settingsviews.SettingsProblem, bool) {
	if h.SetAside == nil {
		return settingsviews.SettingsProblem{}, false
	}
	n, latest, err := h.SetAside(ctx, time.Time{})
	if err != nil || latest == nil {
		return settingsviews.SettingsProblem{}, false
	}
	return settingsviews.SettingsProblem{
		ID: "history-refused", Status: views.Status{Tone: "wait", Label: "Degraded", Text: "History refused " + format.Count(n, "record")},
		Consequence: fmt.Sprintf("Pages lack what was refused. The table set_aside of the history database has each record with its reason, until you delete it. The latest, of %s, at %s: %s",
			latest.Writer, latest.At.UTC().Format(time.RFC3339), latest.Reason),
	}, true
}

// leaderWords describes which replica runs the controllers.
func (h *Pages) leaderWords() string {
	if h.Leader == nil {
		return notKnown
	}
	switch state := h.Leader(); {
	case !state.Elects:
		return "no election (--leader-election=false): this console runs the controllers"
	case state.Leads:
		return "this replica (" + state.Identity + ") runs the controllers"
	case state.Trouble != "":
		return "this replica does not run the controllers, because the Lease cannot be used: " + state.Trouble
	case state.Leader == "" || state.Leader == state.Identity:
		return "none known: no replica runs the controllers now"
	default:
		return "replica " + state.Leader + " runs the controllers; this one (" + state.Identity + ") takes over if it stops"
	}
}

// historyWords describes where history is stored.
func (h *Pages) historyWords() string {
	if h.Recording == nil {
		return "off (--history=none): kept only while the console runs"
	}
	state := h.Recording()
	switch {
	case state.LastError != "":
		return fmt.Sprintf("cannot be written to %s: %s. %s waiting", h.Setup.Database, state.LastError, format.Count(state.Pending, "line"))
	case state.WrittenUntil.IsZero():
		return "kept in " + h.Setup.Database + ", once the cluster is connected"
	case state.Since.IsZero():
		return fmt.Sprintf("kept in %s by the replica that leads, last written %s ago", h.Setup.Database, format.ShortAge(max(0, h.Now().Sub(state.WrittenUntil))))
	}
	return fmt.Sprintf("kept in %s, last written %s ago", h.Setup.Database, format.ShortAge(max(0, h.Now().Sub(state.WrittenUntil))))
}

func manageWords(state diagnostics.Report) string {
	switch {
	case state.ReadOnly != "":
		return "not changed: the console is read-only"
	case !state.Install.Manage:
		return "not changed (--manage-kueue=false)"
	case state.CanWrite == diagnostics.Yes:
		return "managed by the cluster policy"
	case state.CanWrite == diagnostics.No:
		return "the console has no permission to change it"
	}
	return "managed by the cluster policy, if the console has permission"
}

func policiesWords(missing []string, checked bool, there string) string {
	switch {
	case len(missing) > 0:
		return "admission policies are missing"
	case !checked:
		return notKnown
	}
	return there
}

// policyWords describes what an admission policy does, if it is installed.
func policyWords(state diagnostics.PolicyState, installed, missing string) string {
	switch state {
	case diagnostics.PolicyInstalled:
		return installed
	case diagnostics.PolicyMissing, diagnostics.PolicyUnsupported:
		return missing
	}
	return notKnown
}

func (h *Pages) signInCard() settingsviews.SettingsCard {
	card := settingsviews.SettingsCard{ID: "settings-signin", Title: "Sign-in"}
	if h.Setup.Issuer == "" {
		card.Lines = []views.ValueLine{{Name: "Issuer", Value: "none: everyone who can reach the console acts with its permissions"}}
		return card
	}
	card.Lines = []views.ValueLine{
		{Name: "Issuer", Value: h.Setup.Issuer},
		{Name: "Client ID", Value: h.Setup.ClientID},
		{Name: "Username claim", Value: "claim " + h.Setup.UserClaim},
	}
	return card
}

// Pages answers the route of the settings.
type Pages struct {
	*console.Console
	Setup     Setup
	Recording func() recorder.State                                                                   // how history is written; nil without history
	SetAside  func(ctx context.Context, since time.Time) (n int, latest *history.SetAside, err error) // records that history refused; nil without history
	Leader    func() leader.State                                                                     // which replica runs the controllers
	Replays   func() []live.Replay                                                                    // contradicted explanations; nil without simulations
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Settings, h.Handler(h.settings))
	s.Page(urls.Settings+"/replays/:replay", h.Handler(h.replay))
}

// replayLinks returns the links to the kept snapshots, the latest first.
func (h *Pages) replayLinks() (list []settingsviews.SettingsReplay) {
	if h.Replays == nil {
		return nil
	}
	for _, r := range h.Replays() {
		list = append(list, settingsviews.SettingsReplay{Address: urls.Replay(r.ID), ID: r.ID, Constraint: r.Constraint, At: r.Time.UTC().Format(time.DateTime) + " UTC", Size: fmt.Sprintf("%d kB", (len(r.Data)+999)/1000)})
	}
	return list
}

// replay answers GET /settings/replays/:replay with a file for kuota simulate. Only
// those who may open the settings get it.
func (h *Pages) replay(c echo.Context) error {
	notFound := &governance.Error{Kind: governance.NotFound, Op: "read replay", Message: "Page not found, or you do not have access."}
	if h.Replays == nil || !h.Settings.CanView(c.Request().Context(), console.UserOf(c)) {
		return notFound
	}
	list := h.Replays()
	i := slices.IndexFunc(list, func(r live.Replay) bool { return r.ID == c.Param("replay") })
	if i < 0 {
		return notFound
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="snapshot-`+list[i].ID+`.json.gz"`)
	return c.Blob(http.StatusOK, "application/gzip", list[i].Data)
}
