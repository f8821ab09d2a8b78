package handlerstest

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
)

// AlertsBackend is alerts in memory.
type AlertsBackend struct {
	State    alerts.State
	Firing   int
	Admin    bool // whether the user may silence
	Silenced []history.Silence
	Tested   string // the receiver that was tested last
	Ended    string // the id of the silence that ended last
}

func (d *AlertsBackend) Count(access.Scope) int { return d.Firing }

func (d *AlertsBackend) Within(context.Context, access.Scope) (alerts.State, error) {
	return d.State, nil
}

func (d *AlertsBackend) MaySilence(context.Context, governance.User) (bool, error) {
	return d.Admin, nil
}

func (d *AlertsBackend) Silence(_ context.Context, _ governance.User, n history.Silence) error {
	d.Silenced = append(d.Silenced, n)
	return nil
}

func (d *AlertsBackend) EndSilence(_ context.Context, _ governance.User, id string) error {
	d.Ended = id
	return nil
}

func (d *AlertsBackend) Test(_ context.Context, _ governance.User, receiver string) error {
	d.Tested = receiver
	return nil
}
