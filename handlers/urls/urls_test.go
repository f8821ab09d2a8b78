package urls

import (
	"strings"
	"testing"
	"time"
)

func TestParseLinkTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ template, wantError string }{
		"none":                  {},
		"the documented one":    {template: `https://grafana.example.com/explore?schemaVersion=1&panes=%7B"a":%7B"datasource":"loki","queries":[%7B"refId":"A","expr":"%7Bnamespace=\"{namespace}\",pod=~\"{pod}.*\"%7D"%7D],"range":%7B"from":"{from}","to":"{to}"%7D%7D%7D`},
		"in the path":           {template: "http://logs:9200/{namespace}/{kind}/{task}/{pod}/{container}"},
		"an unknown one":        {template: "https://logs/?q={nmespace}", wantError: "{nmespace}"},
		"braces of a query":     {template: `https://logs/?q={namespace="{namespace}"}`, wantError: "single brace"},
		"in the host":           {template: "https://{namespace}.example.com/", wantError: "host"},
		"extending the host":    {template: "https://example.com{task}", wantError: "host"},
		"as a port":             {template: "https://example.com:{task}/", wantError: "https://host"},
		"another scheme":        {template: "javascript:alert({task})", wantError: "https://host"},
		"no host":               {template: "/logs/{task}", wantError: "https://host"},
		"with credentials":      {template: "https://a:b@logs/{task}", wantError: "https://host"},
		"a control character":   {template: "https://logs/\n", wantError: "https://host"},
		"the user as host name": {template: "https://{task}@example.com/", wantError: "https://host"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLinkTemplate(tc.template)
			if tc.wantError == "" && (err != nil || string(got) != tc.template) {
				t.Errorf("got %q, %v, want the template", got, err)
			}
			if tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("got error %v, want one with %q", err, tc.wantError)
			}
		})
	}
}

func TestLinkTemplateURL(t *testing.T) {
	template, err := ParseLinkTemplate("https://logs.example.com/{namespace}/{task}?pod={pod}&c={container}&k={kind}&from={from}&to={to}&team={team}&node={node}")
	if err != nil {
		t.Fatal(err)
	}
	source := LinkSource{Namespace: "team-a", Kind: "Job", Task: "train", From: time.UnixMilli(1000), To: time.UnixMilli(2000)}
	if got, want := template.URL(source), "https://logs.example.com/team-a/train?pod=train&c=&k=job&from=1000&to=2000&team=&node="; got != want {
		t.Errorf("of a task: got %s, want %s", got, want)
	}
	source.Pod, source.Container = "train-0 x", `a&b="{task}"/..`
	if got, want := template.URL(source), "https://logs.example.com/team-a/train?pod=train-0+x&c=a%26b%3D%22%7Btask%7D%22%2F..&k=job&from=1000&to=2000&team=&node="; got != want {
		t.Errorf("of a container: got %s, want %s", got, want)
	}
	if got, want := template.URL(LinkSource{Team: "a&b", Node: "gpu-1", From: time.UnixMilli(1), To: time.UnixMilli(2)}), "https://logs.example.com//?pod=&c=&k=&from=1&to=2&team=a%26b&node=gpu-1"; got != want {
		t.Errorf("of a node: got %s, want %s", got, want)
	}
	if got := template.Host(); got != "logs.example.com" {
		t.Errorf("got host %s", got)
	}
	if got := LinkTemplate("").URL(source); got != "" {
		t.Errorf("without a template: got %s, want none", got)
	}
}
