// Package charttest renders and tests the Helm chart in deploy/chart. It is a module
// of its own, because Helm has many dependencies that the console does not need.
//
//	deploy/chart ─▶ Render ─▶ tests
//	                       └▶ generate ─▶ deploy/rbac, the table of docs/install.md
package charttest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Root returns the folder of the checkout.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Load loads the chart.
func Load() (*chart.Chart, error) { return loader.LoadDir(filepath.Join(Root(), "deploy", "chart")) }

// Release is what a chart is rendered for.
type Release struct {
	Name, Namespace string
	Kubernetes      string   // version; empty means v1.36.0
	APIs            []string // groups and versions beside the built-in ones
	Values          string   // YAML
}

// Render returns the rendered templates by their path in the chart, such as
// templates/deployment.yaml. Its errors are those that helm install reports.
func Render(r Release) (map[string]string, error) {
	c, err := Load()
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(r.Values), &values); err != nil {
		return nil, fmt.Errorf("parse values: %w", err)
	}
	if r.Kubernetes == "" {
		r.Kubernetes = "v1.36.0"
	}
	version, err := common.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return nil, err
	}
	if !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, version.Version) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", c.Metadata.KubeVersion, version.Version)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(append(common.VersionSet{}, capabilities.APIVersions...), r.APIs...)
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, IsInstall: true, Revision: 1}, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		files[strings.TrimPrefix(name, c.Name()+"/")] = text
	}
	return files, nil
}
