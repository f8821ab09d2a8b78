-- What runs that ended used on each day in UTC, by priority class, kind and person: sums of
-- task_usage.

-- +goose Up
CREATE TABLE task_usage_days (
	dimension TEXT NOT NULL, -- class, kind or person
	resource  TEXT NOT NULL,
	team      TEXT NOT NULL, -- * for all
	day       INTEGER NOT NULL, -- its beginning
	pool      TEXT NOT NULL,
	name      TEXT NOT NULL, -- of the class, kind or person
	used      INTEGER NOT NULL, -- amount × ms
	lost      INTEGER NOT NULL, -- the part of runs that a preemption ended
	PRIMARY KEY (dimension, resource, team, day, pool, name)
) WITHOUT ROWID;

-- Until when the sums are kept: an earlier version moves seen and not this. -1 while they are
-- not complete, as at first.
ALTER TABLE state ADD COLUMN summed INTEGER NOT NULL DEFAULT -1;
