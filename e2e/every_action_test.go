package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/audit/events"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// auditedVariable is the environment variable with which the API server of these tests sends
// audit events to the console, and everyAction runs after them. make verify sets it.
const auditedVariable = "KUOTA_TEST_AUDITED"

// receiver is the console's receiver of audit events; nil for none.
var receiver *consoles.AuditReceiver

// sendAudited has the API server send what the project's policy says. Its log has, too, what
// tests read of it.
func sendAudited(o *clustertest.Options) error {
	dir, err := os.MkdirTemp("", "kuota-every-action-")
	if err != nil {
		return err
	}
	after := o.After
	o.After = func(c *clustertest.Cluster) error { return errors.Join(after(c), everyAction(c), os.RemoveAll(dir)) }
	if receiver, err = consoles.NewAuditReceiver(dir); err != nil {
		return err
	}
	var policy, log auditv1.Policy
	for file, into := range map[string]*auditv1.Policy{receiver.Policy: &policy, filepath.Join(clustertest.Root(), "cmd", "localcluster", "audit-policy.yaml"): &log} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if err != nil {
			return err
		}
	}
	last := len(policy.Rules) - 1 // none of everything else
	policy.Rules = append(policy.Rules[:last], log.Rules...)
	text, err := yaml.Marshal(policy)
	if err != nil {
		return err
	}
	o.AuditPolicy, o.AuditWebhook = filepath.Join(dir, "policy.yaml"), receiver.Webhook
	return os.WriteFile(o.AuditPolicy, text, 0o600)
}

// recorded is an entry of activity, as far as the log of the API server has it.
type recorded struct{ uid, action, person string }

// everyAction returns an error unless the activity of the console has each action of all
// tests exactly once, with its person, by the audit log of the API server: what was done to
// each task that activity says was submitted, and each deletion of an allocation and of the
// policy.
func everyAction(c *clustertest.Cluster) error {
	if consoleProcess == nil {
		return nil
	}
	var problems []string
	for deadline := time.Now().Add(clustertest.Patience); ; time.Sleep(time.Second) {
		got, kinds, err := activityOf(consoleURL)
		if err != nil {
			return err
		}
		want, err := audited(filepath.Join(c.Dir, "logs"))
		if err != nil {
			return err
		}
		outside := 0
		problems = nil
		for entry, n := range want {
			if !slices.Contains([]string{"ComputeAllocation", "ClusterPolicy"}, kinds[entry.uid]) && got[recorded{entry.uid, string(audit.Submit), ""}] == 0 {
				continue // no task, or one of another console
			}
			outside++
			if got[entry] != n {
				problems = append(problems, fmt.Sprintf("%s: %d times in activity, %d in the log", entry, got[entry], n))
			}
		}
		submitted := 0
		for entry, n := range got {
			switch {
			case entry.action == string(audit.Submit) && n > 1:
				problems = append(problems, fmt.Sprintf("%s: %d times in activity", entry, n))
			case entry.action == string(audit.Submit):
				submitted++
			case entry.action == string(audit.Delete) && want[entry] == 0 && !strings.HasPrefix(entry.uid, "uid-"): // as TestHostileTasks invents them
				problems = append(problems, fmt.Sprintf("%s: in activity and not in the log", entry))
			}
		}
		if all := flag.Lookup("test.run").Value.String() == ""; all && len(problems) == 0 && (submitted < 100 || outside < 100) {
			problems = []string{fmt.Sprintf("only %d tasks and %d actions", submitted, outside)}
		}
		if len(problems) == 0 {
			fmt.Printf("activity has each action once: %d tasks were submitted, and %d actions are in the log of the API server\n", submitted, outside)
			return nil
		}
		if time.Now().After(deadline) {
			slices.Sort(problems)
			return fmt.Errorf("of %d actions on %d tasks, activity differs from the log of the API server:\n%s", outside, submitted, strings.Join(problems, "\n"))
		}
	}
}

// activityOf counts the entries of the console's activity, and returns the kinds of objects
// by UID. Submissions have no person here: the log has none.
func activityOf(address string) (counts map[recorded]int, kinds map[string]string, err error) {
	admin, ok := signedIn.Load(address + " admin")
	if !ok {
		return nil, nil, errors.New("no test signed in as admin")
	}
	response, err := admin.(*http.Client).Get(address + "/activity.csv")
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("activity: %s", response.Status)
	}
	counts, kinds = map[recorded]int{}, map[string]string{}
	rows := csv.NewReader(response.Body)
	for {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return counts, kinds, nil
		case err != nil:
			return nil, nil, err
		}
		person, action, outcome, kind, uid := row[1], row[4], row[5], row[6], row[9]
		if outcome != "succeeded" || uid == "" {
			continue
		}
		if action == string(audit.Submit) {
			person = ""
		}
		counts[recorded{uid, action, person}]++
		kinds[uid] = kind
	}
}

// audited counts the actions in the audit logs of a folder, with the user for whom the
// console acted as the person of what it did.
func audited(dir string) (map[recorded]int, error) {
	const account = "system:serviceaccount:kuota-system:kuota"
	logs, err := filepath.Glob(filepath.Join(dir, "audit*.log"))
	if err != nil {
		return nil, err
	}
	first := map[string]time.Time{} // when each object was first deleted
	deleted := map[string]recorded{}
	counts, changes := map[recorded]int{}, map[string]bool{}
	for _, log := range logs {
		file, err := os.Open(log)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewReader(file)
		for {
			line, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			var event auditv1.Event
			if !bytes.Contains(line, []byte(`"responseObject"`)) || json.Unmarshal(line, &event) != nil {
				continue
			}
			byConsole := event.User.Username == account
			for _, entry := range (events.Reader{Controllers: []string{"system:serviceaccount:kueue-system:*"}}).Entries(&event) {
				found := recorded{entry.UID, entry.Action, entry.Actor}
				if byConsole && event.ImpersonatedUser != nil {
					found.person = event.ImpersonatedUser.Username
				}
				switch {
				case entry.Action == string(audit.Delete):
					if at, exists := first[entry.UID]; !exists || entry.At.Before(at) {
						first[entry.UID], deleted[entry.UID] = entry.At, found
					}
				case byConsole: // it records what it was asked for, such as a restart
				case !changes[entry.ID]:
					changes[entry.ID] = true
					counts[found]++
				}
			}
		}
	}
	for _, entry := range deleted {
		counts[entry]++
	}
	return counts, nil
}
