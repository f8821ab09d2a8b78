-- What runs that ended used on each day in UTC, by priority class, kind and person: sums of
-- task_usage.

-- +goose Up
CREATE TABLE task_usage_days (
	dimension TEXT COLLATE "C" NOT NULL, -- class, kind or person
	resource  TEXT COLLATE "C" NOT NULL,
	team      TEXT COLLATE "C" NOT NULL, -- * for all
	day       BIGINT NOT NULL, -- its beginning
	pool      TEXT COLLATE "C" NOT NULL,
	name      TEXT COLLATE "C" NOT NULL, -- of the class, kind or person
	used      BIGINT NOT NULL, -- amount × ms
	lost      BIGINT NOT NULL, -- the part of runs that a preemption ended
	PRIMARY KEY (dimension, resource, team, day, pool, name)
);

-- Until when the sums are kept: an earlier version moves seen and not this. -1 while they are
-- not complete, as at first.
ALTER TABLE state ADD COLUMN summed BIGINT NOT NULL DEFAULT -1;
