// Package worker answers questions of package simulate in a child process, so that
// a crash, a hang or the memory of Kueue's scheduler costs an answer and never the
// console.
//
//	Worker.Ask ── request: changes since the last snapshot, question ──► child: Serve ──► engine.Answer
//	    ▲                                                                  │
//	    └───────────────────────── response: report ◄──────────────────────┘
//
// The child starts with the first question, keeps the last snapshot, and ends some
// minutes after the last one. Messages are JSON values on its standard input and
// output.
package worker

import (
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
)

// request asks a child. Requests are numbered, and answered in any order.
type request struct {
	ID uint64 `json:"id"`
	// Update turns the last snapshot into the one that the question is about, the
	// first of a child an empty one.
	Update   simulate.Change    `json:"update,omitzero"`
	Time     time.Time          `json:"time"`
	Version  string             `json:"version,omitempty"` // of the cluster's Kueue
	Question *simulate.Question `json:"question"`
	Limit    time.Duration      `json:"limit"`
}

// response is the answer of a child.
type response struct {
	ID      uint64           `json:"id"`
	Report  *simulate.Report `json:"report,omitempty"`
	Error   string           `json:"error,omitempty"`
	Timeout bool             `json:"timeout,omitempty"` // the question's time was over
}
