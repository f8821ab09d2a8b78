package utilization

import (
	"regexp"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/catalog"
)

// Kind is what a device is. Devices of one kind are never added to those of
// another.
type Kind string

// The kinds of device.
const (
	GPU    Kind = "GPU"
	Neuron Kind = "Neuron device"
)

// KindOf is the kind of device that a Kubernetes resource is, and how much of one
// a unit of it is; empty for one that is none.
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

// migSlices is how many slices MIG cuts a GPU into.
const migSlices = 7

var profileName = regexp.MustCompile(`^(?:[1-7]c\.)?([1-7])g\.`)

// migShare is how much of a GPU a MIG device is; one slice, where its profile is
// not known.
func migShare(profile string) float64 {
	if m := profileName.FindStringSubmatch(profile); m != nil {
		n, _ := strconv.Atoi(m[1])
		return float64(n) / migSlices
	}
	return 1.0 / migSlices
}
