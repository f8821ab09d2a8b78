// Package hardware renders how busy accelerators are: a section of the dashboard, and
// a CSV file.
package hardware
