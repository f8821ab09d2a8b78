// Package policy answers the card of the cluster policy and its forms: /policies/cluster,
// /instances/pools, /usage/prices and /alerts/rules change a part of it each.
package policy
