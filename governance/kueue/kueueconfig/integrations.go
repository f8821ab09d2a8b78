package kueueconfig

import yaml "go.yaml.in/yaml/v3"

// BatchJob is the integration that Kueue enables if its configuration lists
// none.
const BatchJob = "batch/job"

// Integrations returns the kinds of jobs that Kueue manages, in the order of
// its configuration: first built-in ones such as batch/job, then external ones
// such as Job.v1.batch.example.com.
func Integrations(text string) []string {
	var file struct {
		Integrations struct {
			Frameworks         []string `yaml:"frameworks"`
			ExternalFrameworks []string `yaml:"externalFrameworks"`
		} `yaml:"integrations"`
	}
	if yaml.Unmarshal([]byte(text), &file) != nil || len(file.Integrations.Frameworks) == 0 {
		file.Integrations.Frameworks = []string{BatchJob}
	}
	return append(file.Integrations.Frameworks, file.Integrations.ExternalFrameworks...)
}
