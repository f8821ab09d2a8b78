package logs

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks/index"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const deletedNote = "The pod was deleted. These are its last lines."

func podDeleted() error {
	return &governance.Error{Kind: governance.NotFound, Op: "read log", Message: "The pod does not exist any more, and Kubernetes keeps no log of it."}
}

func forbidden(namespace string) error {
	return &governance.Error{Kind: governance.Forbidden, Op: "read log", Message: fmt.Sprintf("You do not have permission to read logs in namespace %s: get pods/log.", namespace)}
}

// ending returns why the log of a container ended that was opened when its pod was as
// in opened; over is false if the container still runs.
func ending(opened, now *index.Pod, container string) (words string, over bool) {
	switch {
	case opened.UID != now.UID:
		return deletedNote, true
	case now.Restarts() > opened.Restarts() && !now.HasEnded(container):
		return "The container ended and was started again. Reload the page to see its new log.", true
	case now.HasEnded(container):
		words = "The container has ended."
		if why := now.Trouble.WordsOf(container); why != "" {
			words = why
		}
		return words, true
	}
	return "", false
}

// Sentence returns an error of this package in words for the reader.
func Sentence(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) {
		return ours.Message
	}
	return "The log cannot be read now."
}

// kubeletUnreachable matches the errors of the API server if it cannot ask the kubelet.
var kubeletUnreachable = regexp.MustCompile(`(?i)dial tcp|no preferred addresses|connection refused|no such host|i/o timeout|TLS handshake|proxy error|EOF$|context deadline`)

// maxReported bounds an error of the API server in a sentence.
const maxReported = 300

// explain returns an error of the API server in words for the reader.
func explain(err error, q Query, pod *index.Pod) error {
	var ours *governance.Error
	if errors.As(err, &ours) {
		return err
	}
	answer := &governance.Error{Kind: governance.Unavailable, Op: "read log", Err: err}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		answer.Message = cluster.Unreachable
		return answer
	}
	message := status.Status().Message
	switch {
	case apierrors.IsForbidden(err):
		return forbidden(q.Task.Namespace)
	case apierrors.IsNotFound(err) && isNode(status.Status().Details):
		answer.Kind, answer.Message = governance.NotFound, fmt.Sprintf("Node %s does not exist any more, and the log with it.", pod.Node)
	case apierrors.IsNotFound(err):
		return podDeleted()
	case apierrors.IsBadRequest(err) && strings.HasPrefix(message, "previous terminated container"):
		answer.Kind, answer.Message = governance.NotFound, fmt.Sprintf("Container %s has no earlier run whose log is kept.", q.Container)
	case apierrors.IsBadRequest(err) && strings.Contains(message, "is waiting to start"):
		answer.Kind, answer.Message = governance.NotFound, cmp.Or(pod.Trouble.WordsOf(q.Container), "The container has not started yet, so it has written nothing.")
	case kubeletUnreachable.MatchString(message):
		answer.Message = fmt.Sprintf("The API server cannot reach the kubelet of node %s, which has the log.", pod.Node)
	default:
		if len(message) > maxReported {
			message = strings.ToValidUTF8(message[:maxReported], "") + "…"
		}
		answer.Message = fmt.Sprintf("The log cannot be read from node %s. Kubernetes reports: %s", pod.Node, message)
	}
	return answer
}

func isNode(details *metav1.StatusDetails) bool {
	return details != nil && details.Kind == "nodes"
}
