package manifest

import (
	"os"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/catalog"
)

// SanitizeSpec and the CRD allow the same amounts.
func TestPatternsEqualSchema(t *testing.T) {
	schema, err := os.ReadFile("../../deploy/crds/kuota.dev_computeallocations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{vCPU.String(), memory.String(), catalog.PartitionProfile.String()} {
		if !strings.Contains(string(schema), pattern) {
			t.Errorf("the schema has no %s", pattern)
		}
	}
}
