package handlerstest

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/diagnostics"
)

// SettingsBackend has the settings report in memory.
type SettingsBackend struct {
	Result  diagnostics.Report
	Failure error
	Hidden  bool
}

func (d *SettingsBackend) CanView(context.Context, governance.User) bool { return !d.Hidden }

func (d *SettingsBackend) Report(context.Context, governance.User) (diagnostics.Report, error) {
	return d.Result, d.Failure
}
