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
INSERT INTO task_usage_days SELECT 'class', resource, team, began - began % 86400000, pool, class, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, team, began - began % 86400000, pool, class;
INSERT INTO task_usage_days SELECT 'class', resource, '*', began - began % 86400000, pool, class, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, began - began % 86400000, pool, class;
INSERT INTO task_usage_days SELECT 'kind', resource, team, began - began % 86400000, pool, kind, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, team, began - began % 86400000, pool, kind;
INSERT INTO task_usage_days SELECT 'kind', resource, '*', began - began % 86400000, pool, kind, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, began - began % 86400000, pool, kind;
INSERT INTO task_usage_days SELECT 'person', resource, team, began - began % 86400000, pool, person, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, team, began - began % 86400000, pool, person;
INSERT INTO task_usage_days SELECT 'person', resource, '*', began - began % 86400000, pool, person, CAST(SUM(amount * (ended - began)) AS BIGINT), CAST(SUM(preempted * amount * (ended - began)) AS BIGINT)
	FROM task_usage WHERE ended > 0 GROUP BY resource, began - began % 86400000, pool, person;
-- Until when the sums are kept: an earlier version moves seen and not this. -1 while they are wrong.
ALTER TABLE state ADD COLUMN summed INTEGER NOT NULL DEFAULT 0;
UPDATE state SET summed = seen;
