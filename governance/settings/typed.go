package settings

import (
	"fmt"
	"strings"

	"kuota.dev/kuota/governance/kueueconfig"
)

// again applies the manifests of the Kueue that runs. Where its version is not
// known, none is guessed: another one would be an upgrade, or a step back.
func again(s Seen) string {
	version, _ := kueueconfig.Version(s.Kueue.Image, minor)
	if version == "" {
		return "# Which version of Kueue runs is not known here: apply the manifests of that one.\n"
	}
	return install(version)
}

// install applies Kueue's manifests of a version.
func install(version string) string {
	return "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/" + version + "/manifests.yaml\n"
}

// tagged is an image with a place for its version in the place of its tag.
func tagged(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	return image + ":<version that runs>" // a shell does not take it as it stands
}

// setImage gives Kueue's image by a tag that tells its version.
func setImage(s Seen) string {
	return fmt.Sprintf("# Tag the image that runs with its version, such as %s, and give it by that tag:\nkubectl --namespace %s set image deployment %s manager=%s\n",
		Tested, s.Install.Namespace, s.Install.Deployment, tagged(s.Kueue.Image))
}
