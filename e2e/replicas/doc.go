// Package replicas runs two replicas of the built console against a real API server,
// Kueue and PostgreSQL, and kills, pauses and stops the one that leads during saves
// and changes. No save may be lost, no version number used twice, nothing recorded
// twice, and no gap in history be longer than 15 seconds.
package replicas
