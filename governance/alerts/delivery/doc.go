// Package delivery sends messages about alerts to webhooks and by mail. It is the only package that
// talks to receivers, which can be down, slow or hostile: no redirect is followed, a call
// takes at most five seconds, and no more than a few kilobytes of an answer are read. An
// error never contains an address, which is a secret.
package delivery
