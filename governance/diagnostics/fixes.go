package diagnostics

import (
	"fmt"
	"regexp"
	"strings"

	"kuota.dev/kuota/governance/kueueconfig"
	"kuota.dev/kuota/governance/reconcile"
)

// again applies the manifests of the Kueue that runs. Where its version is not
// known, none is guessed: another one would be an upgrade, or a step back.
func reinstallFix(s Observation) string {
	version, _ := kueueconfig.Version(s.Kueue.Image, oldestMinor)
	if version == "" {
		return "# The running version of Kueue is unknown: apply the manifests of that version.\n"
	}
	return installFix(s.Install, version)
}

// released is the part of a version that Kueue's own releases are called by,
// without what a vendor put behind it.
var releasePattern = regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?`)

// install applies Kueue's manifests of a version.
func installFix(in reconcile.KueueInstall, version string) string {
	text := "# This applies Kueue's default ConfigMap and Deployment. Where kubectl reports a conflict, keep your version.\n" +
		"# It reports no conflict for objects that were applied in the same way: back up both first.\n"
	if customNames(in) {
		text += fmt.Sprintf("# The console expects %s. Change these names in the manifests first.\n", describeInstall(in))
	}
	return text + "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/" + releasePattern.FindString(version) + "/manifests.yaml\n"
}

// rights gives the console its own.
func grantFix(in reconcile.KueueInstall) string {
	text := ""
	if customNames(in) {
		text = fmt.Sprintf("# In this file, change the Role kuota-kueue-configuration and its binding first: %s.\n", describeInstall(in))
	}
	return text + "kubectl apply --server-side -f deploy/rbac/console.yaml\n"
}

// named tells whether the console was given other names than Kueue installs
// itself by.
func customNames(in reconcile.KueueInstall) bool {
	in.Manage = reconcile.DefaultKueueInstall.Manage
	return in != reconcile.DefaultKueueInstall
}

func describeInstall(in reconcile.KueueInstall) string {
	return fmt.Sprintf("ConfigMap %s and Deployment %s in namespace %s", in.ConfigMap, in.Deployment, in.Namespace)
}

// tagged is an image with a place for its version in the place of its tag.
func imageWithTagPlaceholder(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	return image + ":<version that runs>" // a shell does not take it as it stands
}

// setImage gives Kueue's image by a tag that tells its version.
func tagImageFix(s Observation) string {
	return fmt.Sprintf("# Tag the running image with its version, such as %s, and use that tag:\nkubectl --namespace %s set image deployment %s manager=%s\n",
		Tested, s.Install.Namespace, s.Install.Deployment, imageWithTagPlaceholder(s.Kueue.Image))
}
