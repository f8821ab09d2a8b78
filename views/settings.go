package views

import "strconv"

// SettingsPage is how the cluster, Kueue and the console are set up.
type SettingsPage struct {
	Chrome
	Problems []SettingsProblem // the worst first; none when nothing is missing
	Cards    []SettingsCard
	Config   string // Kueue's configuration as seen; empty when it could not be read
	Args     string // the arguments of Kueue's container, one a line
}

// SettingsGap is something that is missing.
type SettingsProblem struct {
	ID          string
	Status      Status // Text is what is missing
	Consequence string
	Patch       string // empty where nothing can be typed
}

// SettingsCard is a list of facts.
type SettingsCard struct {
	ID, Title string
	Lines     []ValueLine
}

// gapCount is for the head of the card.
func (p SettingsPage) gapCount() string {
	switch len(p.Problems) {
	case 0:
		return ""
	case 1:
		return "1 problem"
	}
	return strconv.Itoa(len(p.Problems)) + " problems"
}
