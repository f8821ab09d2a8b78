// Package strange runs random clusters of what real ones contain, and of what nobody
// expects there, on the real Kueue: odd quantities and resources, cohorts, selectors, long
// names, bare Workloads, and objects that vanish. After each of them every page, file and
// figure of a console is checked against the objects.
//
//   - scenario_test.go: the objects of one seed, and the file of them
//   - cluster_test.go: makes the objects, waits until Kueue has decided, deletes them
//   - crawl_test.go: reads every page and file that the console links to
//   - figures_test.go: compares figures, states and reasons with Kueue's own
//   - strange_test.go: the run
package strange
