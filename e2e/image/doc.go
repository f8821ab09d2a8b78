// Package image tests the image: it builds the Dockerfile with buildah for each
// platform and runs the result in a container. install.sh installs what that
// needs and makes the base image, because tests use no registry. The package has
// no code of its own and must not be imported.
package image
