package catalog_test

import (
	"testing"

	"kuota.dev/kuota/governance/catalog"
)

func TestWhatQuotaIsGivenOf(t *testing.T) {
	for resource, want := range map[string]string{
		"cpu": "counts", "memory": "counts", "vpc.amazonaws.com/efa": "counts", "nvidia.com/gpu": "counts", "aws.amazon.com/neurondevice": "counts",
		"amd.com/gpu": "counts", "gpu.intel.com/xe": "counts", "nvidia.com/mig-1g.5gb": "counts",

		"nvidia.com/gpu.shared": "looks", "aws.amazon.com/neuron": "looks", "aws.amazon.com/neuroncore": "looks", "gpu.intel.com/i915_monitoring": "looks",
		"google.com/tpu": "looks", "example.com/vGPU": "looks", "example.com/big-gpu-mem": "looks",

		"ephemeral-storage": "", "pods": "", "hugepages-2Mi": "", "example.com/nic": "", "example.com/input": "", "rdma/hca": "", "gpu": "",
	} {
		got := ""
		switch counts, looks := catalog.IsQuotaResource(resource), catalog.LooksLikeAccelerator(resource); {
		case counts && looks:
			got = "both"
		case counts:
			got = "counts"
		case looks:
			got = "looks"
		}
		if got != want {
			t.Errorf("%s is %q, want %q", resource, got, want)
		}
	}
}
