package teams_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

// An elastic task that asks for nodes is submitted with its limits, and refused where one pod
// without a node would keep all tasks of the cluster waiting.
func TestSubmitProvision(t *testing.T) {
	d := &handlerstest.Backend{}
	address := handlerstest.Serve(t, d) + "/teams/vision/submit"
	_, page := handlerstest.Get(t, address+"?elastic=true")
	typed := map[string]string{"action": "save", "name": "train", "image": "train:1", "elastic": "true", "pods": "2", "max": "8", "growth": "Provision", "unscheduled": "4", "provision": "900"}
	if page.Find("#nodes").Is("[open]") {
		t.Error("the inputs of more nodes are not folded")
	}
	if response, refused := sendForm(t, address, page, typed); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("answers %s: %s", response.Status, handlerstest.Text(refused.Find(".error")))
	}
	if e := d.SubmitBackend.Submitted[0].Elastic; e.Growth != v1alpha1.GrowthProvision || *e.MaxUnscheduledReplicas != 4 || e.ProvisionTimeoutInSeconds != 900 {
		t.Errorf("submitted %+v", e)
	}
	for name, c := range map[string]struct {
		field, value, says string
		blocks             bool
	}{
		"less than a step": {"unscheduled", "1", "less than a step of 2 pods", false},
		"no time":          {"provision", "0", "at least 1", false},
		"blocked":          {"growth", "Provision", "Kueue would admit no task of any team", true},
	} {
		d.SubmitBackend.Blocks = c.blocks
		changed := map[string]string{}
		for field, value := range typed {
			changed[field] = value
		}
		changed[c.field] = c.value
		response, refused := sendForm(t, address, page, changed)
		htmlcheck.Page(t, refused)
		if text := handlerstest.Text(refused.Find("#" + c.field + "-error")); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, c.says) || !refused.Find("#nodes").Is("[open]") {
			t.Errorf("%s: answers %s with %q at %s, want %q, unfolded", name, response.Status, text, c.field, c.says)
		}
	}
}
