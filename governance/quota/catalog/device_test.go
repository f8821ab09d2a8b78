package catalog_test

import (
	"testing"

	"kuota.dev/kuota/governance/quota/catalog"
)

func TestResourceKinds(t *testing.T) {
	for resource, want := range map[string]string{
		"cpu": "quota", "memory": "quota", "vpc.amazonaws.com/efa": "quota", "nvidia.com/gpu": "quota", "aws.amazon.com/neurondevice": "quota",
		"amd.com/gpu": "quota", "gpu.intel.com/xe": "quota", "nvidia.com/mig-1g.5gb": "quota",

		"nvidia.com/gpu.shared": "like accelerator", "aws.amazon.com/neuron": "like accelerator", "aws.amazon.com/neuroncore": "like accelerator", "gpu.intel.com/i915_monitoring": "like accelerator",
		"google.com/tpu": "like accelerator", "example.com/vGPU": "like accelerator", "example.com/big-gpu-mem": "like accelerator",

		"ephemeral-storage": "", "pods": "", "hugepages-2Mi": "", "example.com/nic": "", "example.com/input": "", "rdma/hca": "", "gpu": "",
	} {
		got := ""
		switch isQuota, like := catalog.IsQuotaResource(resource), catalog.LooksLikeAccelerator(resource); {
		case isQuota && like:
			got = "both"
		case isQuota:
			got = "quota"
		case like:
			got = "like accelerator"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}
