package v1alpha1

import (
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
// +kubebuilder:validation:XValidation:rule="!has(self.after) || self.rule in ['task-waits', 'own-quota-waits', 'not-admitted', 'no-checkpoint', 'training-slow', 'quota-idle', 'nodes-lost', 'policy-differs', 'console-stale']",message="this rule has no time; set off, or a count of task-preempted or tasks-fail"
// +kubebuilder:validation:XValidation:rule="!has(self.count) || self.rule in ['task-preempted', 'tasks-fail']",message="only task-preempted and tasks-fail have a count"
type AlertRule struct {
	// +required
	// +kubebuilder:validation:Enum=task-waits;own-quota-waits;not-admitted;preemption-loop;task-preempted;tasks-fail;task-idle;no-checkpoint;training-slow;quota-idle;budget;nodes-lost;policy-differs;console-stale;history-refused
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

// ReceiverNotices is whether people may choose a receiver for notices about their own tasks.
// +kubebuilder:validation:Enum=Also;Only
type ReceiverNotices string

// A receiver with one of these values gets notices. Without, it gets alerts only.
const (
	AlsoNotices ReceiverNotices = "Also" // beside alerts
	OnlyNotices ReceiverNotices = "Only" // and no alerts
)

// AlertReceiver gets alerts, and notices to people about their own tasks.
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Email' && !(has(self.notices) && self.notices == 'Only')) == has(self.to)",message="a receiver of type Email that gets alerts, and no other, has addresses in to"
// +kubebuilder:validation:XValidation:rule="!has(self.team) || !has(self.department)",message="set one of team and department"
// +kubebuilder:validation:XValidation:rule="!has(self.severity) || !has(self.notices) || self.notices != 'Only'",message="notices have no severity; leave it out, or let the receiver get alerts as well"
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

	// To are the e-mail addresses that get the alerts of a receiver of type Email. Notices go
	// to the verified address of the person.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:XValidation:rule=`self.all(a, a.matches(r'^[^@\s<>,;]+@[^@\s<>,;]+$'))`,message="an e-mail address looks like ops@example.com"
	To []string `json:"to,omitempty"`

	// Team limits the receiver to the alerts and the tasks of one team. Without it, the
	// receiver gets those of all teams and of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Team string `json:"team,omitempty"`

	// Department limits the receiver to the alerts and the tasks of the teams in a department or
	// below it, and to alerts about these departments.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Department string `json:"department,omitempty"`

	// Severity limits the receiver to alerts that are at least as severe.
	// +optional
	// +kubebuilder:validation:Enum=info;warning;critical
	Severity string `json:"severity,omitempty"`

	// Notices lets people choose the receiver for notices about their own tasks: Also beside
	// alerts, or Only. Without it, the receiver gets alerts only.
	// +optional
	Notices ReceiverNotices `json:"notices,omitempty"`
}
