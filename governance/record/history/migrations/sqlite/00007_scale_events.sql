-- Changes of the size of elastic tasks.

-- +goose Up
CREATE TABLE scale_events (
	task        TEXT NOT NULL, -- UID
	number      INTEGER NOT NULL, -- counts the events of a task from 1, without gaps
	at          INTEGER NOT NULL,
	namespace   TEXT NOT NULL,
	name        TEXT NOT NULL,
	team        TEXT NOT NULL,
	cause       TEXT NOT NULL,
	pods_before INTEGER NOT NULL,
	pods        INTEGER NOT NULL,
	minimum     INTEGER NOT NULL, -- of pods, those that are not growth
	accelerator TEXT NOT NULL, -- resource; empty for none
	per_pod     INTEGER NOT NULL, -- accelerators
	changed_by  TEXT NOT NULL, -- user
	node        TEXT NOT NULL,
	other_part  TEXT NOT NULL, -- UID of the Workload that the pods were preempted or withdrawn for
	other       TEXT NOT NULL, -- its task, as JSON; empty if unknown
	idle        TEXT NOT NULL, -- whose idle quota growth uses, as JSON; empty if unknown
	PRIMARY KEY (task, number)
) WITHOUT ROWID;
CREATE INDEX scale_events_at ON scale_events (at);
