package v1alpha1

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The bounds of the resources. The schema in deploy/crds has the same values: the
// markers beside the fields cannot refer to constants, so TestBoundsEqualSchema
// compares them. Forms and imports check input against these constants.
const (
	MaxTeamName    = 40
	MaxClassName   = 40 // of a priority class
	MaxPoolName    = 40
	MaxDisplayName = 128
	MaxDescription = 1024 // of an allocation and of a priority class
	MaxMembers     = 500
	MaxMemberName  = 256

	MaxDepartmentMembers = 100

	MaxWeight             = 100 // of a team's fair share and of a priority class
	MaxQuotaRows          = 15
	MaxAmount             = 10_000_000 // instances, accelerators, partitions, vCPU, or GiB of memory in one row
	MaxBorrowLimitPercent = 10_000

	MaxShares       = 32 // of an allocation
	MaxShareName    = 20
	MaxShareWeight  = 10_000
	MaxShareMembers = 20 // of 32 shares, they fit into an annotation

	MaxWindows          = 8 // of an allocation
	MaxNotice           = 720 * time.Hour
	MaxAcceleratorHours = 10_000_000_000 // of a budget
	MaxBudgetPercent    = 1000

	MaxPriorityClasses  = 10
	MaxTimeLimitSeconds = 365 * 24 * 3600 // of the time limits of a priority class
	MaxResourceWeight   = 1000
	MaxPools            = 64
	MaxListedResources  = 32 // of the policy
	MaxRowResources     = 16 // of a row of quota
	MaxResourceLabel    = 40
	MaxOverPercent      = 1000 // of a limit of over-allocation
	MaxPrices           = 256
	MaxAlertRules       = 32
	MaxAlertReceivers   = 16
)

// NamePattern is the pattern of the names of teams, namespaces, priority classes
// and pools.
const NamePattern = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

var namePattern = regexp.MustCompile(NamePattern)

var moneyPattern = regexp.MustCompile(`^[0-9]{1,12}([.][0-9]{1,4})?$`)

// ValidMoney reports whether text is an amount of a budget: a number above 0.
func ValidMoney(text string) bool {
	return moneyPattern.MatchString(text) && strings.Trim(text, "0.") != ""
}

// ValidName reports whether name has only lower-case letters, digits and hyphens,
// and starts and ends with a letter or a digit. It does not check the length.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Time returns the time from which the price holds.
func (p *HourlyPrice) Time() (time.Time, error) {
	layout := time.DateOnly
	if len(p.From) > len(layout) {
		layout = "2006-01-02T15:04:05Z"
	}
	at, err := time.Parse(layout, p.From)
	if err == nil && (at.Year() < 2000 || at.Year() > 8999) {
		err = fmt.Errorf("the year of %s is not from 2000 to 8999", p.From)
	}
	return at, err
}
