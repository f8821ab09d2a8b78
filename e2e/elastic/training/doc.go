// Package training has tests only: docs/examples/elastic in containers on a real node,
// with Debian's PyTorch. install.sh makes the base image, because tests use no registry.
package training
