-- Preemption loops: a Workload that was preempted again and again. Averages exclude
-- its spans.

-- +goose Up
CREATE TABLE loops (
	part  TEXT NOT NULL,
	since INTEGER NOT NULL, -- the first preemption
	last  INTEGER NOT NULL, -- the latest
	runs  INTEGER NOT NULL, -- that it ended after the first preemption
	team  TEXT NOT NULL,
	class TEXT NOT NULL,
	PRIMARY KEY (part, since)
) WITHOUT ROWID;
CREATE INDEX loops_last ON loops (last);

-- 1 if a span belongs to a loop: no statistics include it.
ALTER TABLE spans ADD COLUMN looped INTEGER NOT NULL DEFAULT 0;

-- The number of a preemption by Kueue's count for the Workload: the first and the
-- last of that second; 0 if unknown.
ALTER TABLE steps ADD COLUMN nth_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN nth_last INTEGER NOT NULL DEFAULT 0;
