package v1alpha1

import (
	"fmt"
	"net/mail"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Alerts sets when alerts fire, and who is notified of them.
type Alerts struct {
	// Rules change the defaults of rules. One for a priority class overrides one for all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.rule == b.rule && has(a.priorityClass) == has(b.priorityClass) && (!has(a.priorityClass) || a.priorityClass == b.priorityClass)))",message="the same rule is set twice; combine them"
	Rules []AlertRule `json:"rules,omitempty"`

	// Receivers get alerts. Each gets all, except for those that it excludes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Receivers []AlertReceiver `json:"receivers,omitempty"`
}

// AlertRule sets when the alerts of a rule fire.
// +kubebuilder:validation:XValidation:rule="!has(self.priorityClass) || self.rule == 'task-waits'",message="only task-waits has limits for priority classes"
// +kubebuilder:validation:XValidation:rule="[has(self.after), has(self.count), has(self.off) && self.off].filter(set, set).size() == 1",message="set one of after, count and off"
// +kubebuilder:validation:XValidation:rule="!has(self.after) || self.rule in ['task-waits', 'own-quota-waits', 'not-admitted', 'quota-idle', 'nodes-lost', 'policy-differs', 'console-stale']",message="this rule has no time; set off, or a count of task-preempted or tasks-fail"
// +kubebuilder:validation:XValidation:rule="!has(self.count) || self.rule in ['task-preempted', 'tasks-fail']",message="only task-preempted and tasks-fail have a count"
type AlertRule struct {
	// +required
	// +kubebuilder:validation:Enum=task-waits;own-quota-waits;not-admitted;preemption-loop;task-preempted;tasks-fail;task-idle;quota-idle;budget;nodes-lost;policy-differs;console-stale;history-refused
	Rule string `json:"rule"`

	// PriorityClass is the name of a priority class of the policy.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PriorityClass string `json:"priorityClass,omitempty"`

	// After is how long the cause lasts until the alert fires, such as 30m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="after is from 1s to 8760h"
	After *metav1.Duration `json:"after,omitempty"`

	// Count is how often a task was preempted, or how many tasks of a team failed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Count *int32 `json:"count,omitempty"`

	// Off stops the rule for all teams, or for the priority class.
	// +optional
	Off bool `json:"off,omitempty"`
}

// AlertReceiverType is the format of the messages to a receiver.
// +kubebuilder:validation:Enum=Webhook;Slack;Teams;Email
type AlertReceiverType string

// The types of receivers.
const (
	WebhookReceiver AlertReceiverType = "Webhook" // JSON
	SlackReceiver   AlertReceiverType = "Slack"
	TeamsReceiver   AlertReceiverType = "Teams" // Microsoft Teams
	EmailReceiver   AlertReceiverType = "Email" // SMTP
)

// AlertReceiverTypes are all types of receivers.
var AlertReceiverTypes = []AlertReceiverType{WebhookReceiver, SlackReceiver, TeamsReceiver, EmailReceiver}

// AlertReceiver gets alerts.
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Email') == has(self.to)",message="a receiver of type Email, and no other, has addresses in to"
type AlertReceiver struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a receiver name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit"
	Name string `json:"name"`

	// +optional
	// +kubebuilder:default=Webhook
	Type AlertReceiverType `json:"type,omitempty"`

	// SecretName is a Secret in the namespace of the console. Its key url is the address
	// of a webhook: https, or http on loopback. For Email it has the keys server, from,
	// username and password.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// To are the e-mail addresses of a receiver of type Email.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:XValidation:rule=`self.all(a, a.matches(r'^[^@\s<>,;]+@[^@\s<>,;]+$'))`,message="an e-mail address looks like ops@example.com"
	To []string `json:"to,omitempty"`

	// Team limits the receiver to the alerts of one team. Without it, the receiver gets
	// those of all teams and of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Team string `json:"team,omitempty"`

	// Severity limits the receiver to alerts that are at least as severe.
	// +optional
	// +kubebuilder:validation:Enum=info;warning;critical
	Severity string `json:"severity,omitempty"`
}

// Bounds of Alerts.
const (
	MaxAlertRules     = 32
	MaxAlertReceivers = 16
	maxAlertAddresses = 20
)

// alertSeverities are the values of AlertReceiver.Severity.
var alertSeverities = []string{"info", "warning", "critical"}

// Problem returns a phrase about an invalid value; empty for none. The rules are in
// governance/alerts.
func (r *AlertRule) Problem() string {
	timed := []string{"task-waits", "own-quota-waits", "not-admitted", "quota-idle", "nodes-lost", "policy-differs", "console-stale"}
	counted := []string{"task-preempted", "tasks-fail"}
	set := 0
	for _, one := range []bool{r.After != nil, r.Count != nil, r.Off} {
		if one {
			set++
		}
	}
	switch {
	case !slices.Contains(slices.Concat(timed, counted, []string{"preemption-loop", "task-idle", "budget", "history-refused"}), r.Rule):
		return "there is no rule " + r.Rule
	case r.PriorityClass != "" && r.Rule != "task-waits":
		return "only task-waits has limits for priority classes"
	case set != 1:
		return "set a time, a number or off"
	case r.After != nil && !slices.Contains(timed, r.Rule):
		return r.Rule + " has no time"
	case r.Count != nil && !slices.Contains(counted, r.Rule):
		return r.Rule + " has no number; write a time such as 30m"
	case r.After != nil && (r.After.Duration < 1e9 || r.After.Hours() > 8760):
		return "the time is from 1s to 8760h"
	case r.Count != nil && (*r.Count < 1 || *r.Count > 1_000_000):
		return "the number is from 1 to 1,000,000"
	}
	return ""
}

// Problem returns a phrase about an invalid value; empty for none.
func (r *AlertReceiver) Problem() string {
	email := r.Type == EmailReceiver
	wrong := slices.IndexFunc(r.To, func(to string) bool {
		at, err := mail.ParseAddress(to)
		return err != nil || at.Address != to || len(to) > 254
	})
	switch {
	case !ValidName(r.Name) || len(r.Name) > 40:
		return "a receiver name has up to 40 lower-case letters, digits and hyphens"
	case r.Type != "" && !slices.Contains(AlertReceiverTypes, r.Type):
		return "a receiver is a Webhook, Slack, Teams or Email"
	case r.SecretName == "" || len(r.SecretName) > 253:
		return "name the Secret with the address"
	case email != (len(r.To) > 0):
		return "a receiver of type Email, and no other, has addresses, such as to=ops@example.com"
	case len(r.To) > maxAlertAddresses:
		return fmt.Sprintf("a receiver has at most %d addresses", maxAlertAddresses)
	case wrong >= 0:
		return r.To[wrong] + " is no e-mail address"
	case len(r.Team) > 40:
		return "a team name has at most 40 characters"
	case r.Severity != "" && !slices.Contains(alertSeverities, r.Severity):
		return "the severity is info, warning or critical"
	}
	return ""
}

// Problems returns phrases about all invalid rules and receivers, by index; -1 for their
// number.
func (a *Alerts) Problems() (rules, receivers map[int]string) {
	rules, receivers = map[int]string{}, map[int]string{}
	if a == nil {
		return rules, receivers
	}
	if len(a.Rules) > MaxAlertRules {
		rules[-1] = fmt.Sprintf("these are %d rules; a policy has at most %d", len(a.Rules), MaxAlertRules)
	}
	if len(a.Receivers) > MaxAlertReceivers {
		receivers[-1] = fmt.Sprintf("these are %d receivers; a policy has at most %d", len(a.Receivers), MaxAlertReceivers)
	}
	seen := map[[2]string]bool{}
	for i := range a.Rules {
		r := &a.Rules[i]
		key := [2]string{r.Rule, r.PriorityClass}
		if problem := r.Problem(); problem != "" {
			rules[i] = problem
		} else if seen[key] {
			rules[i] = "this rule is set twice"
		}
		seen[key] = true
	}
	names := map[string]bool{}
	for i := range a.Receivers {
		r := &a.Receivers[i]
		if problem := r.Problem(); problem != "" {
			receivers[i] = problem
		} else if names[r.Name] {
			receivers[i] = "another receiver has this name"
		}
		names[r.Name] = true
	}
	return rules, receivers
}
