package catalog

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kuota.dev/kuota/governance/quota/resources"
)

// The Kubernetes resources that every ClusterQueue covers.
const (
	CPU     = "cpu"
	Memory  = "memory"
	GPU     = "nvidia.com/gpu"
	Neuron  = "aws.amazon.com/neurondevice"
	Network = "vpc.amazonaws.com/efa"
)

// GiB and MiB are sizes in bytes.
const (
	MiB resources.Amount = 1 << 20
	GiB resources.Amount = 1 << 30
)

// Instance is the nominal resources of one instance of a type, before
// reservations of the system and defects.
type Instance struct {
	Type                string
	MilliCPU            resources.Amount // thousandths of a vCPU
	Memory              resources.Amount // bytes
	Accelerators        resources.Amount // GPUs or Neuron devices
	AcceleratorResource string           // their Kubernetes resource; empty when there are none
	AcceleratorModel    string           // such as H100; empty when unknown
	AcceleratorMemory   int64            // GB of one accelerator as its vendor counts; 0 when unknown
	NetworkDevices      resources.Amount // EFA interfaces
	Partitions          []string         // MIG profiles its accelerators can be cut into
}

//go:embed instance_types.csv
var table string

// known returns the embedded table of instance types, parsed once.
var known = sync.OnceValue(func() map[string]Instance {
	types, err := parseTable(table)
	if err != nil {
		panic("catalog: instance_types.csv: " + err.Error())
	}
	return types
})

// Known returns the figures of an instance type in the table.
func Known(instanceType string) (Instance, bool) {
	i, ok := known()[instanceType]
	return i, ok
}

// KnownTypes returns the instance types of the table, sorted.
func KnownTypes() []string {
	names := make([]string, 0, len(known()))
	for name := range known() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func parseTable(text string) (map[string]Instance, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	types := make(map[string]Instance, len(rows))
	for _, row := range rows[1:] {
		var numbers [5]resources.Amount
		for i, column := range []int{1, 2, 3, 6, 7} {
			if row[column] == "" {
				continue
			}
			n, err := strconv.ParseInt(row[column], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row[0], err)
			}
			numbers[i] = resources.Amount(n)
		}
		types[row[0]] = Instance{
			Type:                row[0],
			MilliCPU:            numbers[0].Times(1000),
			Memory:              numbers[1].Times(int64(GiB)),
			Accelerators:        numbers[2],
			AcceleratorResource: row[4],
			AcceleratorModel:    row[5],
			AcceleratorMemory:   int64(numbers[3]),
			NetworkDevices:      numbers[4],
			Partitions:          strings.Fields(row[8]),
		}
	}
	return types, nil
}
