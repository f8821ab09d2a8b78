package index

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTroubleWords(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	ended := func(reason string, code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, FinishedAt: at}
	}
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	terminated := func(end *corev1.ContainerStateTerminated) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: end}}}}
	}
	failed := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
	}
	disrupted := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message}}}
	}
	for name, tc := range map[string]struct {
		status       corev1.PodStatus
		want         string
		wantRestarts int32
	}{
		"no status":         {},
		"starting":          {status: waiting("ContainerCreating", "")},
		"after init":        {status: waiting("PodInitializing", "")},
		"succeeded":         {status: terminated(ended("Completed", 0))},
		"an exit code":      {status: terminated(ended("Error", 3)), want: "Container main ended with exit code 3."},
		"killed":            {status: terminated(ended("Error", 137)), want: "Container main ended with exit code 137 (SIGKILL)."},
		"a crash":           {status: terminated(ended("Error", 139)), want: "Container main ended with exit code 139 (SIGSEGV)."},
		"out of memory":     {status: terminated(ended("OOMKilled", 137)), want: "Container main needed more memory than it may use, and was killed (OOMKilled)."},
		"no such command":   {status: terminated(&corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, Message: `exec: "trian": executable file not found in $PATH: unknown`}), want: `Container main cannot start: exec: "trian": executable file not found in $PATH: unknown.`},
		"a lost container":  {status: terminated(ended("ContainerStatusUnknown", 137)), want: "The node lost container main, so its exit code is unknown."},
		"an image":          {status: waiting("ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:no": docker.io/library/nginx:no: not found`), want: `The image of container main was not found: rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:no": docker.io/library/nginx:no: not found.`},
		"a private image":   {status: waiting("ImagePullBackOff", "Back-off pulling image \"a\": ErrImagePull: 401 Unauthorized"), want: "The image of container main cannot be pulled, because the registry denies access: Back-off pulling image \"a\": ErrImagePull: 401 Unauthorized."},
		"a registry":        {status: waiting("ImagePullBackOff", `Back-off pulling image "a"`), want: `The image of container main cannot be pulled: Back-off pulling image "a".`},
		"no image":          {status: waiting("ErrImageNeverPull", "x"), want: "The image of container main is not on the node, and its pull policy is Never."},
		"an image's name":   {status: waiting("InvalidImageName", "couldn't parse image name \"A\""), want: "The image of container main has an invalid name: couldn't parse image name \"A\"."},
		"a missing secret":  {status: waiting("CreateContainerConfigError", `secret "token" not found`), want: `Container main cannot start: secret "token" not found.`},
		"an unknown reason": {status: waiting("Whatever", "it is so\nand more"), want: "Container main waits (Whatever): it is so."},
		"a crash loop": {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}}, LastTerminationState: corev1.ContainerState{Terminated: ended("Error", 1)},
		}}}, want: "Container main fails each time, and Kubernetes waits before it starts it again. Container main ended with exit code 1.", wantRestarts: 4},
		"restarts of two": {status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", RestartCount: 1, State: corev1.ContainerState{Terminated: ended("Completed", 0)}, LastTerminationState: corev1.ContainerState{Terminated: ended("Error", 2)}}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "main", RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(at.Add(time.Second))}}}},
		}, want: "Container main needed more memory than it may use, and was killed (OOMKilled).", wantRestarts: 3},
		"restarted after success": {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended("Completed", 0)}}}}, want: "Container main ended with exit code 0.", wantRestarts: 1},
		"evicted":                 {status: failed("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "), want: "The node evicted the pod: The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi."},
		"too long":                {status: failed("DeadlineExceeded", ""), want: "The pod ran for longer than its limit (activeDeadlineSeconds)."},
		"no room":                 {status: failed("OutOfnvidia.com/gpu", "Node didn't have enough resource"), want: "The node rejected the pod, because it had too little nvidia.com/gpu: Node didn't have enough resource."},
		"an unknown failure":      {status: failed("Odd", ""), want: "The pod failed (Odd)."},
		"preempted":               {status: disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"), want: "kube-scheduler preempted the pod for one with a higher priority: default-scheduler: preempting to accommodate a higher priority pod."},
		"a taint":                 {status: disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"), want: "The pod was evicted, because its node has a taint that it does not tolerate: Taint manager: deleting due to NoExecute taint."},
		"drained":                 {status: disrupted("EvictionByEvictionAPI", ""), want: "The pod was evicted by a request, such as kubectl drain."},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(time.Now).PodOf(&corev1.Pod{Status: tc.status})
			if got := p.Trouble.Words(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if p.Restarts() != tc.wantRestarts {
				t.Errorf("got %d restarts, want %d", p.Restarts(), tc.wantRestarts)
			}
			if (p.Trouble == nil) != (tc.want == "") {
				t.Errorf("got trouble %+v, want it only with words", p.Trouble)
			}
		})
	}
}

func TestContainers(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "prepare"}, {Name: "proxy"}}, Containers: []corev1.Container{{Name: "main"}, {Name: "metrics"}}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy"}, {Name: "prepare", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "metrics", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}, {Name: "main"}},
		},
	}
	x := New(time.Now)
	p := x.PodOf(pod)
	initial, main := p.Containers()
	if diff := cmp.Diff([]string{"prepare", "proxy"}, initial); diff != "" {
		t.Errorf("init containers (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"main", "metrics"}, main); diff != "" {
		t.Errorf("containers (-want +got)\n%s", diff)
	}
	var ended []string
	for _, name := range slices.Concat(initial, main, []string{"none"}) {
		if p.HasEnded(name) {
			ended = append(ended, name)
		}
	}
	if diff := cmp.Diff([]string{"prepare", "metrics"}, ended); diff != "" {
		t.Errorf("ended containers (-want +got)\n%s", diff)
	}
	if got := p.Trouble.WordsOf("main"); got != "" {
		t.Errorf("trouble of main: got %q, want none", got)
	}
	if got, want := p.Trouble.WordsOf("metrics"), "Container metrics ended with exit code 1."; got != want {
		t.Errorf("trouble of metrics: got %q, want %q", got, want)
	}
	if initial, main := x.PodOf(&corev1.Pod{}).Containers(); initial != nil || main != nil {
		t.Errorf("without containers: got %v and %v", initial, main)
	}
}
