-- Preemption loops: a Workload that was preempted again and again. Averages exclude
-- its spans.

-- +goose Up
CREATE TABLE loops (
	part  TEXT COLLATE "C" NOT NULL,
	since BIGINT NOT NULL, -- the first preemption
	last  BIGINT NOT NULL, -- the latest
	runs  BIGINT NOT NULL, -- that it ended after the first preemption
	team  TEXT COLLATE "C" NOT NULL,
	class TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (part, since)
);
CREATE INDEX loops_last ON loops (last);

-- 1 if a span belongs to a loop: no statistics include it.
ALTER TABLE spans ADD COLUMN looped BIGINT NOT NULL DEFAULT 0;

-- The number of a preemption by Kueue's count for the Workload: the first and the
-- last of that second; 0 if unknown.
ALTER TABLE steps ADD COLUMN nth_first BIGINT NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN nth_last BIGINT NOT NULL DEFAULT 0;
