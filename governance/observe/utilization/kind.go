package utilization

import (
	"regexp"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota/catalog"
)

// Kind is a kind of device. Figures of different kinds are never added up.
type Kind string

// The kinds of device.
const (
	GPU    Kind = "GPU"
	Neuron Kind = "Neuron device"
)

// KindOf returns the kind of device of a Kubernetes resource and the share of a
// device that one unit is; empty for a resource that is not a device.
func KindOf(resource string) (Kind, float64) {
	switch profile, mig := strings.CutPrefix(resource, "nvidia.com/mig-"); {
	case mig:
		return GPU, migShare(profile)
	case resource == catalog.GPU:
		return GPU, 1
	case resource == catalog.Neuron:
		return Neuron, 1
	}
	return "", 0
}

// resource returns the Kubernetes resource of a device.
func (d *Device) resource() string {
	switch {
	case d.MIG != "":
		return "nvidia.com/mig-" + d.Profile
	case d.Kind == Neuron:
		return catalog.Neuron
	}
	return catalog.GPU
}

// migSlices is the number of compute slices of a GPU in MIG.
const migSlices = 7

var profileName = regexp.MustCompile(`^(?:[1-7]c\.)?([1-7])g\.`)

// migShare returns the share of a GPU that a MIG device is; one slice if the profile
// is unknown.
func migShare(profile string) float64 {
	if m := profileName.FindStringSubmatch(profile); m != nil {
		n, _ := strconv.Atoi(m[1])
		return float64(n) / migSlices
	}
	return 1.0 / migSlices
}
