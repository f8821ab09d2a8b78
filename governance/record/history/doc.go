// Package history persists what the API server forgets: finished and deleted
// tasks with their events, the usage of teams and pools over time, and the gaps
// in which nothing was observed. It owns the database schema and its migrations,
// and it runs on SQLite (one file) or PostgreSQL.
//
// It must not import Kubernetes or Kueue: package recorder translates what it
// watches into this package's types.
//
//	recorder ──RecordTasks──▶ tx ──▶ tasks, steps          ──▶ Tasks, Timeline
//	                          │  └─▶ spans, loops
//	                          │        └─▶ class_hours, class_days ──▶ ClassStats
//	         ──RecordScaleEvents─▶ tx ──▶ scale_events      ──▶ ScaleEvents
//	         ──RecordTrainingStarts▶ tx ─▶ training_starts   ──▶ TrainingStarts
//	         ──AppendSamples─▶ tx ──▶ open_amounts (current value of each series)
//	                          │        └ on change ▶ amounts ▶ amount_hours, amount_days
//	         ──RecordGap────▶ tx ──▶ gaps                   ──▶ Totals, Series, Gaps
//	         ──Forget───────▶ deletes what is older than the retention
//
// The samples of all series advance one clock, state.seen. A series is in one of
// these states:
//
//	        AppendSamples                 AppendSamples, other value
//	unknown ─────────────▶ open(value) ──────────────────────────────▶ open(value')
//	   ▲                       │              (the old interval is stored)
//	   └───────RecordGap───────┘ (every open interval ends where the gap begins)
//
// Times are stored in Unix milliseconds and amounts as integers, so that totals
// are exact.
package history
