package settings

import "kuota.dev/kuota/views"

// SettingsPage shows the configuration of the cluster, Kueue and the console.
type SettingsPage struct {
	views.Chrome
	Problems []SettingsProblem // most severe first
	Cards    []SettingsCard
	Config   string // Kueue's configuration; empty if it could not be read
	Args     string // the arguments of Kueue's container, one per line
	Replays  []SettingsReplay
}

// SettingsReplay is the snapshot of an explanation that a simulation contradicted.
type SettingsReplay struct{ Address, ID, Constraint, At, Size string }

// SettingsProblem is missing or unsuitable configuration.
type SettingsProblem struct {
	ID          string
	Status      views.Status // Text describes the problem
	Consequence string
	Patch       string // commands or configuration that fix it; empty for none
}

// SettingsCard is a list of facts.
type SettingsCard struct {
	ID, Title string
	Lines     []views.ValueLine
}

// gapCount returns the number of problems as text; empty for none.
func (p SettingsPage) gapCount() string {
	if len(p.Problems) == 0 {
		return ""
	}
	return views.Plural(len(p.Problems), "problem", "problems")
}
