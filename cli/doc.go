// Package cli is the command line of users: it reads what pages show from a console, by the
// JSON beside each page, and prints it. It changes nothing.
//
//	command ─▶ client (token of a service account, or of kuota login) ─▶ /tasks.json … ─▶ table, JSON or CSV
package cli
