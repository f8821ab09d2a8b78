// Package without has no code; its tests run the console's services in a
// cluster from which Kueue's definitions are taken away. They have a package of
// their own, since each package of tests has a cluster of its own, and this one
// is not fit for others afterwards.
package without
