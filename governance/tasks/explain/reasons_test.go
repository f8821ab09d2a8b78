package explain

import "testing"

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		constraint Constraint
		reason     string
		want       Agreement
	}{
		"a matching reason":                       {Quota, "WaitingForQuota", Agrees},
		"another reason":                          {Quota, "ExceedsMaxQuota", Disagrees},
		"a reason without the gates":              {QueueStopped, "Inadmissible", Agrees},
		"a reason that Kueue gives before others": {Quota, "PendingEvaluation", Agrees},
		"no reason":                               {Quota, "", Agrees},
		"a job without a Workload":                {NoQueueName, "NoWorkload", Agrees},
		"a reason of a later version of Kueue":    {Quota, "WaitingForCapacityProvider", UnknownReason},
		"nothing that a reason could contradict":  {Unknown, "WaitingForQuota", Agrees},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Verdict{Constraint: tc.constraint}).Compare(tc.reason); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// An unknown reason does not hide that a resource is uncovered.
func TestUncoveredWithAnUnknownReason(t *testing.T) {
	task := requesting(1)
	task.PodSets[0].Requests["example.com/nic"] = 1
	for reason, want := range map[string]Constraint{"": UncoveredResource, "SomethingNew": UncoveredResource, "PendingEvaluation": UncoveredResource, "Pending": UncoveredResource, "Waiting": PendingEvaluation, "WaitingForQuota": Unknown, "NoMatchingFlavor": UncoveredResource} {
		task.Reason = reason
		if v := Why(task, cluster(queue("own", Limit{Nominal: 4}, 0))); v.Constraint != want {
			t.Errorf("%q: got %s, want %s", reason, v.Constraint, want)
		}
	}
}
