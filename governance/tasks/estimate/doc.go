// Package estimate computes when a waiting task probably starts, as a range.
//
// Kueue's scheduler is simulated several times, each time with run times of past runs,
// and with later submissions that repeat those of past days (package simulate,
// Question.Draws). The start in the middle of these simulations is the [Forecast]. How
// past forecasts erred makes a range of it:
//
//	past runs ─────────► Runs.Draw ────────┐
//	past submissions ──► Submissions.Draw ─┴► simulate ──► starts ──► Forecast ──► Calibration.Range
//	                                                                                     ▲
//	                                              past forecasts with what happened ─────┘
//
// The package uses no client and no clock.
package estimate
