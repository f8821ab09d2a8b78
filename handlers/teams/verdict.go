package teams

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	taskpages "kuota.dev/kuota/handlers/tasks"
	teamviews "kuota.dev/kuota/views/teams"
)

// verdictOf converts a verdict on a planned task, in the words for a waiting task.
func verdictOf(v submit.Verdict, p submit.Plan) *teamviews.SubmitVerdict {
	task := queries.Item{Task: &tasks.Task{Namespace: p.Team.Namespace, Queue: p.Team.Queue, Size: tasks.Size{Wanted: int64(p.Pods)}}, Team: p.Team.Name}
	why := taskpages.WhyOf(queries.Detail{Item: task, Verdict: &v.Verdict, About: task})
	said := &teamviews.SubmitVerdict{Text: why.Text, Steps: why.Steps, Changes: why.Changes}
	switch v.Outcome {
	case submit.Starts:
		said.Tone, said.Headline = "ok", "It would be admitted now."
		said.Text = fmt.Sprintf("There is quota for all of it: %s.", ofPool(p))
		if v.Partial {
			said.Headline = "It would be admitted now, with fewer pods."
			said.Text = fmt.Sprintf("There is quota for %d of its %d pods. The others start when pods of it end.", v.Pods, p.Pods)
		}
		said.Steps, said.Changes = nil, nil
		if p.Elastic != nil {
			said.Text = fmt.Sprintf("There is quota for its minimum: %s.", ofPool(p))
			said.Growth = strings.TrimSpace(growthWords(v, p) + " " + askWords(v.Asks, p))
		}
	case submit.Preempts:
		said.Tone, said.Headline = "wait", "It would be admitted after preemption."
		if v.Partial {
			said.Headline = fmt.Sprintf("It would be admitted with %d of its %d pods, after preemption.", v.Pods, p.Pods)
		}
	case submit.Never:
		said.Tone, said.Headline = "bad", "It could never start: "+lowered(why.Headline)
		if v.Verdict.Constraint == explain.ExceedsMax {
			said.Notes = append(said.Notes, mostWords(v, p))
		}
	default:
		said.Tone, said.Headline = "wait", "It would wait: "+lowered(why.Headline)
		if v.Verdict.Constraint == explain.Behind {
			said.Headline, said.Text = "It would wait for its turn.", "Its queue is StrictFIFO: a task that does not fit blocks those behind it."
		}
		if v.Verdict.MayPreempt || v.Verdict.RulesMayPreempt {
			said.Headline = "It may have to wait: " + lowered(why.Headline)
		}
	}
	if p.Elastic != nil && v.Outcome == submit.Never {
		said.Notes = append(said.Notes, "That is the minimum: growth is not counted.")
	}
	if v.Verdict.Fit != nil {
		tooLarge(said, v, p)
	}
	if v.Trial != nil && v.Verdict.Fit == nil {
		tried(said, v)
	}
	if p.Serving != nil {
		withReplicas(said, v, p)
	}
	if paths := p.WithoutRequests(); len(paths) > 0 && v.Outcome != submit.Never {
		said.Tone, said.Text = "wait", ""
		said.Notes = append(said.Notes, fmt.Sprintf("The pods of %s request nothing: unless the namespace has defaults, no quota counts them, and they run on nodes of any pool. Request accelerators, vCPU or memory.", strings.Join(paths, " and ")))
	}
	if v.Ahead > 0 && v.Outcome != submit.Never {
		are := "are"
		if v.Ahead == 1 {
			are = "is"
		}
		said.Notes = append(said.Notes, fmt.Sprintf("%s %s ahead of it in the queue.", format.Capitalize(format.Tasks(v.Ahead)), are))
	}
	if n := len(p.Team.After); n > 0 && v.Outcome != submit.Never {
		said.Text = strings.TrimSpace("If it had to wait for no other task: " + lowered(said.Headline) + " " + said.Text)
		said.Tone, said.Headline = "wait", fmt.Sprintf("It would wait for the end of %s.", format.Tasks(n))
	}
	return said
}

// tried replaces the headline by what Kueue's scheduler does in a simulation.
func tried(said *teamviews.SubmitVerdict, v submit.Verdict) {
	trial := v.Trial
	if trial.Failed != nil {
		said.Checked = taskpages.FailedWords(trial.Failed)
		return
	}
	instant := said.Tone
	switch {
	case trial.Starts && len(trial.Preempted) > 0:
		said.Tone, said.Headline = "wait", "It would be admitted after preemption."
	case trial.Starts:
		said.Tone, said.Headline = "ok", "It would be admitted now."
	case trial.Never:
		said.Tone = "bad"
		if v.Outcome != submit.Never {
			said.Headline = "It could never start: the team can never have that much."
		}
	default:
		said.Tone = "wait"
		if v.Outcome != submit.Waits {
			said.Headline = "It would wait: other tasks start first."
		}
	}
	if said.Tone != instant { // the text explains another outcome
		said.Text, said.Steps, said.Changes = "", nil, nil
	}
	if !trial.Starts {
		said.Growth = ""
	}
	if trial.Starts {
		said.Steps, said.Changes, said.Notes = nil, nil, nil
	}
	said.Verified, said.Checked = true, "Simulated with Kueue's scheduler."
	if trial.Tied {
		said.Checked += " A tie between tasks of the same second decides."
	}
	said.Preempted, said.Missed = taskpages.UsageLinks(trial.Preempted), taskpages.UsageLinks(trial.Missed)
}

// growthWords describes the size that an elastic task could have now.
func growthWords(v submit.Verdict, p submit.Plan) string {
	most := p.Elastic.MaxReplicas
	switch {
	case most == p.Pods:
		return "It cannot grow: its minimum is its maximum."
	case v.Reach <= p.Pods:
		return "There is no idle compute for growth now."
	}
	size := fmt.Sprintf("%s of at most %s pods", format.Thousands(int64(v.Reach)), format.Thousands(int64(most)))
	if v.Reach == most {
		size = fmt.Sprintf("its maximum of %s pods", format.Thousands(int64(most)))
	}
	after := ""
	if seconds := p.Elastic.ScalingTimeoutInSeconds; seconds > 0 {
		after = fmt.Sprintf(", once the compute has been idle for %s", format.Duration(time.Duration(seconds)*time.Second))
	}
	return fmt.Sprintf("It could grow to %s now%s.", size, after)
}

// ofPool describes the pods of a plan, with their pool if it is known.
func ofPool(p submit.Plan) string {
	if p.QueuePool.Name == "" {
		return eachWords(p)
	}
	return eachWords(p) + " of " + p.QueuePool.Name
}

// eachWords describes the pods of a plan with their requests.
func eachWords(p submit.Plan) string {
	switch {
	case len(p.PodResources) == 0 && p.Pods == 1:
		return "1 pod without requests"
	case len(p.PodResources) == 0:
		return fmt.Sprintf("%s pods without requests", format.Thousands(int64(p.Pods)))
	case p.Pods == 1:
		return "1 pod with " + format.Amounts(p.PodResources)
	}
	return fmt.Sprintf("%s pods with %s each", format.Thousands(int64(p.Pods)), format.Amounts(p.PodResources))
}

// mostWords returns how many pods would fit if all of them never do.
func mostWords(v submit.Verdict, p submit.Plan) string {
	switch {
	case v.MaxPods == 0:
		return "Even one such pod is too much. Request less in each."
	case v.MaxPods == 1:
		return "At most one such pod fits."
	}
	return fmt.Sprintf("At most %s such pods fit.", format.Thousands(v.MaxPods))
}

// tooLarge reports that no node is large enough for a pod. It replaces any verdict
// on quota: Kueue may admit such a task, and then its pods wait forever.
func tooLarge(said *teamviews.SubmitVerdict, v submit.Verdict, p submit.Plan) {
	fit := v.Verdict.Fit
	said.Tone, said.Headline, said.Text = "bad", fmt.Sprintf("It could never start: no node of %s is that large.", fit.Flavor), taskpages.TooSmall(fit)
	said.Steps, said.Changes, said.Notes = nil, nil, nil
	switch each := p.PodResources[fit.Resource]; {
	case fit.Largest == 0:
	case fit.Resource == p.QueuePool.Instance.AcceleratorResource:
		pods := (each.Times(int64(p.Pods)).Plus(fit.Largest).Minus(1)).Per(fit.Largest)
		said.Notes = append(said.Notes, fmt.Sprintf("%s pods with %s each would fit.", format.Thousands(pods), quota.Amount(fit.Resource, fit.Largest)))
	default:
		said.Notes = append(said.Notes, fmt.Sprintf("A pod with %s would fit.", quota.Amount(fit.Resource, fit.Largest)))
	}
	if s := v.Verdict.Shortage; s != nil && v.Verdict.Constraint == explain.ExceedsMax {
		said.Notes = append(said.Notes, fmt.Sprintf("Also, team %s can have at most %s there, including what it can borrow.", p.Team.Name, quota.Amount(s.Resource, s.PotentialAvailable)))
	}
}

// lowered returns a sentence for use after a colon.
func lowered(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	if word, _, _ := strings.Cut(sentence, " "); word == "Kueue" {
		return sentence
	}
	return string(unicode.ToLower(first)) + sentence[size:]
}
