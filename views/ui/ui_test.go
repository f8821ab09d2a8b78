package ui

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"kuota.dev/kuota/views/htmlcheck"
)

func text(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, templ.EscapeString(s))
		return err
	})
}

// with renders a component around children.
func with(component templ.Component, children string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return component.Render(templ.WithChildren(ctx, text(children)), w)
	})
}

// row is a table with one row.
var row = templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
	cells := templ.Raw(`<tr id="r"><th scope="row">a</th><td class="n">1</td><td></td><td data-label="own">a &gt; b</td></tr>`)
	heads := slices.Concat(Heads("Name"), []Head{{Label: "Memory", Unit: "GiB", Number: true}}, HiddenHead("Action"), Heads("Other"))
	return Table(TableProps{ID: "t", Label: "Tasks", Heads: heads}).Render(templ.WithChildren(ctx, cells), w)
})

func TestComponents(t *testing.T) {
	tests := map[string]struct {
		component templ.Component
		want      string // a selector that must match
	}{
		"a button sends its name and value": {with(Button(ButtonProps{Kind: ButtonDanger, Name: "action", Value: "stop"}), "Stop"),
			`button[type=submit][name=action][value=stop].btn-danger`},
		"a button with an address is a link": {with(Button(ButtonProps{Href: "/tasks", Label: "All tasks"}), "Tasks"),
			`a.btn-plain[href="/tasks"][aria-label="All tasks"]`},
		"a field with a hint and an error is tied to both": {TextField(FieldProps{ID: "team", Label: "Name", Hint: "Short.", Error: "Too long."}, InputProps{Value: "x"}),
			`input#team[name=team][aria-invalid=true][aria-describedby="team-error team-hint"]`},
		"a field that is right is not invalid": {TextField(FieldProps{ID: "team", Label: "Name"}, InputProps{}),
			`input#team:not([aria-invalid]):not([aria-describedby])`},
		"an optional field says so": {TextField(FieldProps{ID: "note", Label: "Note", Optional: true}, InputProps{}),
			`label[for=note] .optional`},
		"an empty amount shows its default": {Amount(AmountProps{ID: "n", Label: "vCPU", Default: "48"}),
			`input[placeholder="48"][aria-describedby="n-default"]`},
		"an amount over its default can be reset": {Amount(AmountProps{ID: "n", Label: "vCPU", Value: "40", Default: "48"}),
			`button[name=action][value="reset:n"][data-focus=n]`},
		"an amount without a default has nothing to reset": {Amount(AmountProps{ID: "n", Label: "vCPU", Value: "40"}),
			`.amount:not(:has(button))`},
		"an amount carries its error": {Amount(AmountProps{ID: "n", Label: "vCPU", Value: "x", Error: "No number."}),
			`.amount #n-error`},
		"a table can be scrolled by the keyboard": {with(Table(TableProps{ID: "t", Label: "Tasks"}), ""),
			`#t[tabindex="0"][aria-label=Tasks] table caption`},
		"a cell has the label of its column and a role": {row,
			`tbody tr#r[role=row]:has(th[role=rowheader]:not([data-label])) td.n[role=cell][data-label="Memory (GiB)"] + td[data-label=""] + td[data-label=own]:contains("a > b")`},
		"a folded card is closed and named by its heading": {with(Card(CardProps{ID: "c", Title: "Team", Fold: true}), "body"),
			`details:not([open]) > summary h2#c-title`},
		"a card is named by its heading": {with(Card(CardProps{ID: "c", Title: "Team", Tools: text("x")}), "body"),
			`section[aria-labelledby=c-title]:has(#c-title):has(.tools)`},
		"a bad notice interrupts":       {with(Notice(NoticeBad), "Gone."), `[role=alert]`},
		"other notices wait":            {with(Notice(NoticeOK), "Saved."), `[role=status]`},
		"an empty list says what to do": {with(Empty("Nothing yet"), "Add one."), `.empty h3`},
		"a dialog is named by its heading": {with(Dialog(DialogProps{ID: "d", Title: "Stop?"}), "Sure?"),
			`dialog[aria-labelledby=d-title]:has(form[method=dialog] button)`},
		"a moment is UTC until the script runs": {Time("2026-11-21T10:10:00+01:00", ""), `time[data-local]:contains("21 Nov 2026, 09:10:00 UTC")`},
		"a duration has the moment on hover":    {Time("2026-11-21T09:10:00Z", "5 m ago"), `time[title="21 Nov 2026, 09:10:00 UTC"]:contains("5 m ago")`},
		"a group of choices can be linked to": {with(Choices(ChoicesProps{Name: "s", Legend: "S", Error: "Choose one."}), ""),
			`fieldset#s[tabindex="-1"][aria-describedby="s-error"]:has(#s-error)`},
		"a choice is described": {Choice(ChoiceProps{Name: "s", Value: "a", Label: "A", Text: "Means a.", Checked: true}),
			`input[type=radio][checked][name=s][value=a][aria-describedby="s-a-hint"]`},
		"the Enter key's button is out of the way": {DefaultButton("action", "save"), `button[tabindex="-1"][aria-hidden=true]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			doc := htmlcheck.Render(t, test.component)
			htmlcheck.Fragment(t, doc)
			if doc.Find(test.want).Length() == 0 {
				html, _ := doc.Find("body").Html()
				t.Errorf("nothing matches %s in\n%s", test.want, html)
			}
		})
	}
}

func TestTagShowsToneByShapeAndText(t *testing.T) {
	shapes := map[string]string{}
	for _, tone := range []string{"ok", "wait", "bad", "pre", "idle"} {
		doc := htmlcheck.Render(t, Tag(tone, "Word"))
		if got := strings.TrimSpace(doc.Find(".tag.tone-" + tone).Text()); got != "Word" {
			t.Errorf("tag %s shows %q", tone, got)
		}
		html, _ := doc.Find("svg").Html()
		if other, ok := shapes[html]; ok {
			t.Errorf("tones %s and %s look the same", tone, other)
		}
		shapes[html] = tone
	}
	if htmlcheck.Render(t, Tag("new tone", "Word")).Find(".tone-idle").Length() != 1 {
		t.Error("an unknown tone is not idle")
	}
}

func TestMeterStaysInsideItself(t *testing.T) {
	doc := htmlcheck.Render(t, Meter(MeterProps{Label: "6 of 4 held", Max: 4, Mark: 9, Parts: []MeterPart{{"own", 3}, {"borrowed", 3}}}))
	htmlcheck.Fragment(t, doc)
	if got := doc.Find(".meter-borrowed").AttrOr("width", ""); got != "25.00%" {
		t.Errorf("what is beyond the maximum is drawn %s wide, want 25.00%%", got)
	}
	if got := doc.Find(".meter-mark").AttrOr("x1", ""); got != "99.60%" { // fully inside the bar
		t.Errorf("mark is at %s, want 99.60%%", got)
	}
	none := htmlcheck.Render(t, Meter(MeterProps{Label: "nothing there", Parts: []MeterPart{{"own", 1}}}))
	if got := none.Find(".meter-own").AttrOr("width", ""); got != "0.00%" {
		t.Errorf("a part of nothing is drawn %s wide", got)
	}
}

func TestSummaryTitle(t *testing.T) {
	for want, props := range map[string]SummaryProps{
		"The save was not confirmed": {Failure: "No cluster.", Lines: []SummaryLine{{Text: "a"}}},
		"1 problem to fix":           {Lines: []SummaryLine{{Text: "a"}}},
		"2 problems to fix":          {Lines: []SummaryLine{{Text: "a"}, {Text: "b"}}},
	} {
		props.ID = "s"
		if got := htmlcheck.Render(t, Summary(props)).Find("#s h2").Text(); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
}
