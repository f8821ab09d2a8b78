package static

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAxisLabels checks that the labels of an axis do not repeat, however near its values are.
func TestAxisLabels(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node, which runs the script")
	}
	script, err := os.ReadFile("js/charts.js")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(script), "// --- Labels of axes")
	if !ok {
		t.Fatal("charts.js has no labels of axes")
	}
	cases := []struct {
		expression string
		want       []string
	}{
		{"clocks([0, 60, 120], 60)", []string{"00:00\n1 Jan", "00:01", "00:02"}},
		{"clocks([30, 60, 90], 30)", []string{"00:00:30\n1 Jan", "00:01:00", "00:01:30"}},
		{"clocks([31, 31.5, 32], 0.5)", []string{"00:00:31\n1 Jan", "", "00:00:32"}},
		{"clocks([82800, 86400], 3600)", []string{"23:00\n1 Jan", "00:00\n2 Jan"}},
		{"[0, 1, 2].map((v) => short(v, 1))", []string{"0", "1", "2"}},
		{"[0, 2.5, 5].map((v) => short(v, 2.5))", []string{"0", "2.5", "5"}},
		{"[0, 0.005, 0.01].map((v) => short(v, 0.005))", []string{"0", "0.005", "0.01"}},
		{"[0.1, 0.1 + 0.2].map((v) => short(v, 0.1))", []string{"0.1", "0.3"}},
		{"[10000, 10020, 10040].map((v) => short(v, 20))", []string{"10K", "10.02K", "10.04K"}},
		{"[2000000, 2500000].map((v) => short(v, 500000))", []string{"2M", "2.5M"}},
	}
	var expressions []string
	var want [][]string
	for _, tc := range cases {
		expressions, want = append(expressions, tc.expression), append(want, tc.want)
	}
	command := exec.Command(node, "--eval", "const day = 86_400; //"+section+"\nconsole.log(JSON.stringify(["+strings.Join(expressions, ",")+"]))")
	command.Env = append(os.Environ(), "TZ=UTC")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels of %s (-want +got):\n%s", strings.Join(expressions, "; "), diff)
	}
}
