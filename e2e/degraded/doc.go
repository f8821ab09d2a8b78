// Package degraded has no code; its tests run the console's services in a real
// cluster that lacks one thing after another: parts of Kueue's configuration,
// rights of the console, and at last Kueue's definitions. They have a package of
// their own, since each package of tests has a cluster of its own, and no other
// test could use this one.
package degraded
