// Package hardware answers /hardware.csv and renders how busy accelerators are, a section of
// the dashboard.
package hardware
