package tasks_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
)

// The JSON of the list has the words and numbers of the page.
func TestTasksJSON(t *testing.T) {
	d := &handlerstest.Backend{Items: []queries.Item{upcoming().Items[0].Item}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks")
	response, text := answer(t, address+"/tasks.json?team=vision")
	var list struct {
		Tasks []struct {
			Namespace, Name, Path, Team, PriorityClass, Status, Reason string
			Resources                                                  map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || response.StatusCode != http.StatusOK || len(list.Tasks) != 1 {
		t.Fatalf("got %s, error %v: %s; want one task", response.Status, err, text)
	}
	got, row := list.Tasks[0], page.Find("#task-\\=first").Text()
	if row == "" {
		row = page.Find("main").Text()
	}
	for _, want := range []string{got.Name, got.Team, got.PriorityClass, got.Status, got.Reason} {
		if want == "" || !strings.Contains(row, want) {
			t.Errorf("task: got %q, want a text of the row %q", want, row)
		}
	}
	if got.Resources["nvidia.com/gpu"] != 8 || got.Resources["cpu"] != 1.5 {
		t.Errorf("resources: got %v, want 8 GPUs and 1.5 vCPU", got.Resources)
	}
	if page.Find(`a[href="`+got.Path+`"]`).Length() == 0 {
		t.Errorf("path: got %q, want the link of the page", got.Path)
	}

	// One task has the fields of its row.
	var listed struct{ Tasks []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		t.Fatal(err)
	}
	response, text = answer(t, address+"/api/v1/tasks/"+strings.TrimPrefix(got.Path, "/tasks/"))
	if response.StatusCode != http.StatusOK || strings.TrimSpace(text) != string(listed.Tasks[0]) {
		t.Errorf("one task: got %s, %s, want %s", response.Status, text, listed.Tasks[0])
	}
	d.Items = nil
	if response, _ := answer(t, address+"/api/v1/tasks/ns/job/none"); response.StatusCode != http.StatusNotFound {
		t.Errorf("no task: got %s", response.Status)
	}
}
