// Package kinds tests tasks of kinds other than Jobs on their real operators: what
// members may do with them, what Kueue does with them, and what the console shows.
package kinds
