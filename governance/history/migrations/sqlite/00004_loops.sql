-- Preemption loops: of a workload that was preempted again and again, which
-- averages leave out.

-- +goose Up
CREATE TABLE loops (
	part  TEXT NOT NULL,
	since INTEGER NOT NULL, -- the first preemption
	last  INTEGER NOT NULL, -- the latest
	runs  INTEGER NOT NULL, -- that it ended after the first
	team  TEXT NOT NULL,
	class TEXT NOT NULL,
	PRIMARY KEY (part, since)
) WITHOUT ROWID;
CREATE INDEX loops_last ON loops (last);

-- 1 where a span is of a loop: no sum has it.
ALTER TABLE spans ADD COLUMN looped INTEGER NOT NULL DEFAULT 0;

-- Of a preemption, which of its workload it was by Kueue's count: the first and
-- the last of that second; 0 where that is not known.
ALTER TABLE steps ADD COLUMN nth_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN nth_last INTEGER NOT NULL DEFAULT 0;
