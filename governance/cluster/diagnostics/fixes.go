package diagnostics

import (
	"fmt"
	"regexp"
	"strings"

	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
)

// reinstallFix returns commands to apply the manifests of the running version.
// For an unknown version it suggests none, because another version would be an
// upgrade or a downgrade.
func reinstallFix(s Observation) string {
	version, _ := kueueconfig.Version(s.Kueue.Image, oldestMinor)
	if version == "" {
		return "# The running version of Kueue is unknown: apply the manifests of that version.\n"
	}
	return installFix(s.Install, version)
}

// releasePattern matches the part of a version that Kueue's releases have,
// without a vendor's suffix.
var releasePattern = regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?`)

// installFix returns commands to apply Kueue's manifests of a version.
func installFix(in reconcile.KueueInstall, version string) string {
	text := "# This applies Kueue's default ConfigMap and Deployment. Where kubectl reports a conflict, keep your version.\n" +
		"# It reports no conflict for objects that were applied in the same way: back up both first.\n"
	if customNames(in) {
		text += fmt.Sprintf("# The console expects %s. Change these names in the manifests first.\n", describeInstall(in))
	}
	return text + "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/" + releasePattern.FindString(version) + "/manifests.yaml\n"
}

// grantFix returns commands to grant the console its permissions.
func grantFix(s Observation) string {
	text := ""
	if customNames(s.Install) && s.HelmRelease == "" { // the values of a release have the names
		text = fmt.Sprintf("# In this file, change the Role kuota-kueue-configuration and its binding first: %s.\n", describeInstall(s.Install))
	}
	return text + applyFix(s, "rbac/console.yaml")
}

// applyFix returns the command that applies a path of deploy. Where Helm installed the
// console it applies the whole chart: kubectl would apply objects without the values of
// the release. It sets values, such as name=true.
func applyFix(s Observation, path string, values ...string) string {
	if s.HelmRelease != "" {
		command := fmt.Sprintf("helm upgrade %s deploy/chart --namespace %s --reset-then-reuse-values", s.HelmRelease, s.Namespace)
		for _, value := range values {
			command += " --set " + value
		}
		return "# With the chart of the running version, and the values of the release:\n" + command + "\n"
	}
	return "kubectl apply --server-side -f deploy/" + path + "\n"
}

// customNames reports whether Kueue is configured under other names than those
// of its manifests.
func customNames(in reconcile.KueueInstall) bool {
	in.Manage = reconcile.DefaultKueueInstall.Manage
	return in != reconcile.DefaultKueueInstall
}

func describeInstall(in reconcile.KueueInstall) string {
	return fmt.Sprintf("ConfigMap %s and Deployment %s in namespace %s", in.ConfigMap, in.Deployment, in.Namespace)
}

// imageWithTagPlaceholder returns an image with a placeholder in place of its
// tag.
func imageWithTagPlaceholder(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	return image + ":<version that runs>" // a shell rejects it unless it is replaced
}

// tagImageFix returns commands to use an image tag that shows Kueue's version.
func tagImageFix(s Observation) string {
	return fmt.Sprintf("# Tag the running image with its version, such as %s, and use that tag:\nkubectl --namespace %s set image deployment %s manager=%s\n",
		Tested, s.Install.Namespace, s.Install.Deployment, imageWithTagPlaceholder(s.Kueue.Image))
}
