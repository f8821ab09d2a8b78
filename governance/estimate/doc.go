// Package estimate computes when a waiting task probably starts, as a range.
//
// Kueue's scheduler is simulated several times with run times that were drawn from
// past runs (package simulate, Question.Draws). The start in the middle of these
// simulations is the [Forecast]. The simulations know nothing about tasks that are
// submitted later, so the range is derived from how past forecasts erred:
//
//	past runs ──► Runs.Draw ──► simulate ──► starts ──► Forecast ──► Calibration.Range
//	                                                                      ▲
//	                               past forecasts with what happened ─────┘
//
// The package uses no client and no clock.
package estimate
