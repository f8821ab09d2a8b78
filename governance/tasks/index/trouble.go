package index

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
)

// Trouble is what a pod reports of failures and restarts, in the terms of Kubernetes;
// Words has it as sentences. Most pods have none. It is immutable.
type Trouble struct {
	Restarts        int32          // of all containers
	Waiting         ContainerState // why a container does not run; the zero value for none
	Terminated      ContainerState // the latest end of a container that failed or was restarted; the zero value for none
	Reason, Message string         // why the pod failed, or is about to; empty for none
}

// ContainerState is the state of a container of a pod.
type ContainerState struct {
	Container       string
	Reason, Message string
	ExitCode        int32
	At              time.Time // when it ended; zero while it waits
}

// troubleOf returns the trouble of a pod; nil for none.
func troubleOf(status *corev1.PodStatus) *Trouble {
	var t Trouble
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			t.add(&list[i])
		}
	}
	if status.Phase == corev1.PodFailed {
		t.Reason, t.Message = status.Reason, status.Message
	}
	if t.Reason == "" {
		i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		})
		if i >= 0 {
			t.Reason, t.Message = status.Conditions[i].Reason, status.Conditions[i].Message
		}
	}
	if t == (Trouble{}) {
		return nil
	}
	for _, text := range []*string{&t.Reason, &t.Message, &t.Waiting.Container, &t.Waiting.Reason, &t.Waiting.Message, &t.Terminated.Container, &t.Terminated.Reason, &t.Terminated.Message} {
		*text = intern(truncate(tasks.FirstLine(*text)))
	}
	return &t
}

func (t *Trouble) add(s *corev1.ContainerStatus) {
	t.Restarts += s.RestartCount
	// These are no trouble: the kubelet has just begun.
	if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && t.Waiting.Reason == "" {
		t.Waiting = ContainerState{Container: s.Name, Reason: w.Reason, Message: w.Message}
	}
	end := s.State.Terminated
	if end == nil || end.ExitCode == 0 {
		end = s.LastTerminationState.Terminated
	}
	if end != nil && (t.Terminated.Container == "" || end.FinishedAt.After(t.Terminated.At)) {
		t.Terminated = ContainerState{Container: s.Name, Reason: end.Reason, Message: end.Message, ExitCode: end.ExitCode, At: end.FinishedAt.Time}
	}
}

// Words returns the trouble as sentences; empty for none.
func (t *Trouble) Words() string {
	if t == nil {
		return ""
	}
	return joined(t.podWords(), t.Waiting.waitingWords(), t.Terminated.terminatedWords())
}

// WordsOf is Words for one container.
func (t *Trouble) WordsOf(container string) string {
	if t == nil {
		return ""
	}
	words := []string{t.podWords()}
	if t.Waiting.Container == container {
		words = append(words, t.Waiting.waitingWords())
	}
	if t.Terminated.Container == container {
		words = append(words, t.Terminated.terminatedWords())
	}
	return joined(words...)
}

func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

// withReason returns a sentence with the message of Kubernetes, if there is one.
func withReason(sentence, message string) string {
	if message = strings.TrimRight(strings.TrimSpace(message), "."); message == "" {
		return sentence + "."
	}
	return sentence + ": " + message + "."
}

// podReasons are the reasons of failed pods (kubelet 1.36) and of the condition
// DisruptionTarget, in words. The message of Kubernetes follows.
var podReasons = map[string]string{
	"Evicted":                  "The node evicted the pod",
	"TerminationByKubelet":     "The node ended the pod",
	"Preempting":               "The node ended the pod for a critical one",
	"PreemptionByScheduler":    "kube-scheduler preempted the pod for one with a higher priority",
	"DeletionByTaintManager":   "The pod was evicted, because its node has a taint that it does not tolerate",
	"EvictionByEvictionAPI":    "The pod was evicted by a request, such as kubectl drain",
	"DeletionByPodGC":          "The pod was deleted, because its node does not exist any more",
	"NodeLost":                 "The node of the pod does not answer any more",
	"NodeShutdown":             "The node of the pod shut down",
	"Terminated":               "The node of the pod shut down",
	"DeadlineExceeded":         "The pod ran for longer than its limit (activeDeadlineSeconds)",
	"UnexpectedAdmissionError": "The node rejected the pod",
	"NodeAffinity":             "The node rejected the pod",
}

func (t *Trouble) podWords() string {
	known, ok := podReasons[t.Reason]
	switch {
	case t.Reason == "":
		return ""
	case ok:
		return withReason(known, t.Message)
	case strings.HasPrefix(t.Reason, "OutOf"): // OutOfcpu, OutOfnvidia.com/gpu
		return withReason("The node rejected the pod, because it had too little "+strings.TrimPrefix(t.Reason, "OutOf"), t.Message)
	}
	return withReason("The pod failed ("+t.Reason+")", t.Message)
}

// Messages of container runtimes and registries about images.
var (
	imageDenied  = regexp.MustCompile(`(?i)unauthorized|denied|forbidden|authentication required|no basic auth`)
	imageMissing = regexp.MustCompile(`(?i)not found|manifest unknown|no such image`)
)

func (s ContainerState) waitingWords() string {
	switch s.Reason {
	case "":
		return ""
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable":
		switch {
		case imageDenied.MatchString(s.Message):
			return withReason("The image of container "+s.Container+" cannot be pulled, because the registry denies access", s.Message)
		case imageMissing.MatchString(s.Message):
			return withReason("The image of container "+s.Container+" was not found", s.Message)
		}
		return withReason("The image of container "+s.Container+" cannot be pulled", s.Message)
	case "ErrImageNeverPull":
		return "The image of container " + s.Container + " is not on the node, and its pull policy is Never."
	case "InvalidImageName":
		return withReason("The image of container "+s.Container+" has an invalid name", s.Message)
	case "CrashLoopBackOff":
		return "Container " + s.Container + " fails each time, and Kubernetes waits before it starts it again."
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "PreStartHookError", "PostStartHookError":
		return withReason("Container "+s.Container+" cannot start", s.Message)
	}
	return withReason("Container "+s.Container+" waits ("+s.Reason+")", s.Message)
}

// signals are those that end containers, by exit code.
var signals = map[int32]string{130: "SIGINT", 132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 141: "SIGPIPE", 143: "SIGTERM"}

func (s ContainerState) terminatedWords() string {
	switch s.Reason {
	case "OOMKilled":
		return "Container " + s.Container + " needed more memory than it may use, and was killed (OOMKilled)."
	case "ContainerCannotRun", "StartError":
		return withReason("Container "+s.Container+" cannot start", s.Message)
	case "ContainerStatusUnknown":
		return "The node lost container " + s.Container + ", so its exit code is unknown."
	}
	switch {
	case s.Container == "":
		return ""
	case signals[s.ExitCode] != "":
		return fmt.Sprintf("Container %s ended with exit code %d (%s).", s.Container, s.ExitCode, signals[s.ExitCode])
	}
	return fmt.Sprintf("Container %s ended with exit code %d.", s.Container, s.ExitCode)
}
