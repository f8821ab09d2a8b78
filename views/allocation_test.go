package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/views/htmlcheck"
)

func TestAllocationFormPostsByItself(t *testing.T) {
	form := htmlcheck.Render(t, allocationviews.AllocationFormBody(sampleForm())).Find("form")
	if form.AttrOr("method", "") != "post" || form.AttrOr("action", "") != "/policies/allocations/new" {
		t.Errorf("form is sent by %q to %q", form.AttrOr("method", ""), form.AttrOr("action", ""))
	}
	if got := form.Find("[name=request-id]").AttrOr("value", ""); got != "request-1" {
		t.Errorf("request id is %q", got)
	}

	first := form.Find("button[type=submit]").First()
	if first.AttrOr("name", "") != "action" || first.AttrOr("value", "") != "review" {
		t.Error("the Enter key does not lead on: the first submit button does something else")
	}

	actions := form.Find("button[name=action]").Map(func(_ int, b *goquery.Selection) string { return b.AttrOr("value", "") })
	for _, want := range []string{"review", "preview", "add-row", "add-limit", "add-member", "remove-member:1", "remove-limit:0", "make-pool:limit-0", "remove-row:0", "remove-row:1", "reset:row-0-vcpu", "reset:row-1-vcpu"} {
		if !slices.Contains(actions, want) {
			t.Errorf("no button with the action %s", want)
		}
	}
	for _, unwanted := range []string{"reset:row-0-memory", "reset:row-0-accelerators"} {
		if slices.Contains(actions, unwanted) {
			t.Errorf("a button with the action %s, where there is nothing to reset", unwanted)
		}
	}
	form.Find("button").Each(func(_ int, b *goquery.Selection) {
		if b.AttrOr("type", "") != "submit" {
			t.Errorf("button %q does nothing without JavaScript", b.Text())
		}
	})
}

func TestAllocationFormKeepsWhatWasTyped(t *testing.T) {
	doc := htmlcheck.Render(t, allocationviews.AllocationFormBody(sampleForm()))
	for name, want := range map[string]string{
		"team": "Vision!", "display-name": "Vision", "description": "x", "weight": "200", "borrow-percent": "x",
		"namespace": "Research!", "member-0-name": "vision-team", "member-1-name": "system:x", "limit-0-type": "h100", "row-1-count": "x",
		"row-0-type": "ml.p5.48xlarge", "row-0-instances": "", "row-0-accelerators": "2", "row-0-vcpu": "40", "row-0-memory": "", "row-1-type": "ml.p9",
	} {
		input := doc.Find("#" + name)
		if input.AttrOr("name", "") != name || input.AttrOr("value", "") != want {
			t.Errorf("input %s is named %q and has %q, want %q", name, input.AttrOr("name", ""), input.AttrOr("value", ""), want)
		}
	}
	if got := doc.Find("#row-1-profile option[selected]").AttrOr("value", ""); got != "mig-9g.1gb" {
		t.Errorf("the profile is %q", got)
	}
	if got := doc.Find("#member-1-kind option[selected]").AttrOr("value", ""); got != "User" {
		t.Errorf("member 2 is a %q", got)
	}
	if got := doc.Find("[name=new-pool-0-value]").AttrOr("value", ""); got != "ml.g5" {
		t.Errorf("the pool to be made has %q", got)
	}
	if got := doc.Find("#strategy option[selected]").AttrOr("value", ""); got != "LendAndBorrow" {
		t.Errorf("the strategy is %q", got)
	}
	checked := doc.Find("input[checked]").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("value", "") })
	if !slices.Equal(checked, []string{"LowerPriority", "true"}) {
		t.Errorf("chosen is %v", checked)
	}
}

func TestAllocationFormErrors(t *testing.T) {
	form := sampleForm()
	doc := htmlcheck.Render(t, allocationviews.AllocationFormBody(form))

	for _, id := range []string{"team", "display-name", "description", "weight", "borrow-percent", "row-1-type", "row-1-instances", "row-1-accelerators", "row-1-vcpu", "row-1-memory", "row-1-profile", "row-1-count", "namespace", "member-1-name", "limit-0-type", "ceiling"} {
		if doc.Find("#"+id).AttrOr("aria-invalid", "") != "true" {
			t.Errorf("input %s is not marked as wrong", id)
		}
		if !strings.Contains(doc.Find("#"+id+"-error").Text(), "This is wrong.") {
			t.Errorf("input %s has no error text", id)
		}
	}
	if n := doc.Find("#row-0 [aria-invalid]").Length(); n != 0 {
		t.Errorf("%d inputs of the right row are marked as wrong", n)
	}
	if !strings.Contains(doc.Find("#row-1-error").Text(), "The row is wrong.") {
		t.Error("the row has no error text")
	}

	summary := doc.Find("#form-errors[role=alert][tabindex]")
	if got := summary.Find("a").Length(); got != 5 {
		t.Errorf("summary has %d links, want 5", got)
	}
	for _, want := range []string{"The cluster does not answer.", "Row 2, vCPU: This is wrong.", "This belongs to no field."} {
		if !strings.Contains(strings.Join(strings.Fields(summary.Text()), " "), want) {
			t.Errorf("summary does not say %q", want)
		}
	}

	form.Failure, form.Errors = "", nil
	if htmlcheck.Render(t, allocationviews.AllocationFormBody(form)).Find("#form-errors").Length() != 0 {
		t.Error("a summary without anything wrong")
	}
}

func TestAllocationFormDefaults(t *testing.T) {
	doc := htmlcheck.Render(t, allocationviews.AllocationFormBody(sampleForm()))
	memory := doc.Find("#row-0-memory")
	if memory.AttrOr("placeholder", "") != "512" || memory.AttrOr("aria-describedby", "") != "row-0-memory-default" {
		t.Error("an empty input does not show its default")
	}
	if got := strings.TrimSpace(doc.Find("#row-0-memory-default").Text()); got != "default 512" {
		t.Errorf("the default is called %q", got)
	}
	if got := doc.Find("#row-0 .row-notes").Text(); !strings.Contains(got, "Can borrow up to 1 GPU") || !strings.Contains(got, "Half of one is none.") || !strings.Contains(got, "18 of 16 GPUs") {
		t.Errorf("row notes are %q", got)
	}
	if got := doc.Find("#row-0-there").Text(); got != "16 GPUs there" {
		t.Errorf("what is there is %q", got)
	}
}

func TestAllocationFormRowsAndBorrowing(t *testing.T) {
	form := sampleForm()
	form.CanAddRow, form.BorrowEnabled = false, false
	doc := htmlcheck.Render(t, allocationviews.AllocationFormBody(form))
	if doc.Find("[value=add-row]").Length() != 0 {
		t.Error("a row can be added to a full form")
	}
	off := doc.Find(".is-off #borrow-percent")
	if off.Length() != 1 {
		t.Error("the borrow limit does not look unused")
	}
	if _, disabled := off.Attr("disabled"); disabled {
		t.Error("the borrow limit is disabled: what was typed would not be sent")
	}
}
