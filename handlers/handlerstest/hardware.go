package handlerstest

import (
	"context"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// HardwareBackend is a Prometheus that knows the GPUs of idle tasks.
type HardwareBackend struct {
	IdleTasks []tasks.Address // with one GPU each
}

func (d *HardwareBackend) Now() utilization.State {
	r := &utilization.Reading{At: time.Now()}
	for _, t := range d.IdleTasks {
		idle := utilization.Ratio{Used: 0.01, Of: 1}
		r.Devices = append(r.Devices, utilization.Device{
			Kind: utilization.GPU, Node: "gpu-1", UUID: t.UID, Busy: idle, Peak: idle, Pods: []utilization.PodName{{Namespace: t.Namespace, Name: t.UID}},
		})
	}
	return utilization.State{Reading: r}
}

func (d *HardwareBackend) History(context.Context, utilization.Range, utilization.Inventory, string) (utilization.History, error) {
	return utilization.History{}, nil
}

func (d *HardwareBackend) IdleAfter() time.Duration { return 30 * time.Minute }

func (d *HardwareBackend) PodOwners(context.Context, access.Scope) (func(index.PodName) (queries.Owner, bool), error) {
	return func(name index.PodName) (queries.Owner, bool) {
		for _, t := range d.IdleTasks {
			if t.UID == name.Name {
				return queries.Owner{Team: strings.TrimPrefix(t.Namespace, "hyperpod-ns-"), Task: t, Accelerators: 1, AdmittedAt: time.Now().Add(-2 * time.Hour)}, true
			}
		}
		return queries.Owner{}, false
	}, nil
}
