-- Times are Unix milliseconds; 0 means none. Team '' stands for no team; team '*' of
-- rollups stands for all teams.

-- +goose Up
CREATE TABLE tasks (
	id          INTEGER PRIMARY KEY,
	uid         TEXT NOT NULL,
	namespace   TEXT NOT NULL,
	kind        TEXT NOT NULL,
	name        TEXT NOT NULL,
	team        TEXT NOT NULL,
	class       TEXT NOT NULL,
	priority    INTEGER NOT NULL,
	queue       TEXT NOT NULL,
	state       TEXT NOT NULL,
	pools       TEXT NOT NULL, -- JSON: names
	asked       TEXT NOT NULL, -- JSON: requests by resource
	submitted   INTEGER NOT NULL,
	ended       INTEGER NOT NULL,
	gone        INTEGER NOT NULL,
	preemptions INTEGER NOT NULL,
	ran_ms      INTEGER NOT NULL
);
CREATE UNIQUE INDEX tasks_uid ON tasks (uid);
CREATE INDEX tasks_submitted ON tasks (submitted);
CREATE INDEX tasks_team ON tasks (team, submitted);
CREATE INDEX tasks_name ON tasks (namespace, name, submitted);
CREATE INDEX tasks_there ON tasks (gone) WHERE gone = 0;

CREATE TABLE steps (
	id     INTEGER PRIMARY KEY,
	task   INTEGER NOT NULL,
	part   TEXT NOT NULL,
	what   TEXT NOT NULL,
	at     INTEGER NOT NULL,
	reason TEXT NOT NULL,
	text   TEXT NOT NULL,
	other  TEXT NOT NULL,    -- JSON: the other task, or empty
	ran_ms INTEGER NOT NULL, -- -1 if unknown
	size   INTEGER NOT NULL,
	UNIQUE (task, part, what, at)
);

CREATE TABLE spans (
	part  TEXT NOT NULL,
	kind  TEXT NOT NULL, -- wait or run
	began INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	team  TEXT NOT NULL,
	class TEXT NOT NULL
);
CREATE UNIQUE INDEX spans_once ON spans (part, kind, began);
CREATE INDEX spans_ended ON spans (ended);

-- Statistics of the spans that ended in an hour or a day.
CREATE TABLE class_hours (
	team         TEXT NOT NULL,
	start        INTEGER NOT NULL,
	class        TEXT NOT NULL,
	waits        INTEGER NOT NULL,
	wait_ms      INTEGER NOT NULL,
	longest_wait INTEGER NOT NULL,
	runs         INTEGER NOT NULL,
	run_ms       INTEGER NOT NULL,
	longest_run  INTEGER NOT NULL,
	PRIMARY KEY (team, start, class)
) WITHOUT ROWID;
CREATE TABLE class_days (
	team         TEXT NOT NULL,
	start        INTEGER NOT NULL,
	class        TEXT NOT NULL,
	waits        INTEGER NOT NULL,
	wait_ms      INTEGER NOT NULL,
	longest_wait INTEGER NOT NULL,
	runs         INTEGER NOT NULL,
	run_ms       INTEGER NOT NULL,
	longest_run  INTEGER NOT NULL,
	PRIMARY KEY (team, start, class)
) WITHOUT ROWID;

CREATE TABLE holders (
	id       INTEGER PRIMARY KEY,
	team     TEXT NOT NULL,
	pool     TEXT NOT NULL,
	resource TEXT NOT NULL,
	measure  TEXT NOT NULL,
	UNIQUE (team, pool, resource, measure)
);

-- The current value of each series, and the intervals that ended.
CREATE TABLE open_amounts (
	holder INTEGER PRIMARY KEY,
	began  INTEGER NOT NULL,
	amount INTEGER NOT NULL
);
CREATE TABLE amounts (
	holder INTEGER NOT NULL,
	began  INTEGER NOT NULL,
	ended  INTEGER NOT NULL,
	amount INTEGER NOT NULL,
	PRIMARY KEY (holder, began)
) WITHOUT ROWID;

-- Integrals of intervals that ended: over each of times consecutive hours or days,
-- amount × ms, and the ms in which the amount is known.
CREATE TABLE amount_hours (
	holder    INTEGER NOT NULL,
	start     INTEGER NOT NULL,
	times     INTEGER NOT NULL,
	amount_ms INTEGER NOT NULL,
	known_ms  INTEGER NOT NULL,
	PRIMARY KEY (holder, start)
) WITHOUT ROWID;
CREATE TABLE amount_days (
	holder    INTEGER NOT NULL,
	start     INTEGER NOT NULL,
	times     INTEGER NOT NULL,
	amount_ms INTEGER NOT NULL,
	known_ms  INTEGER NOT NULL,
	PRIMARY KEY (holder, start)
) WITHOUT ROWID;

CREATE TABLE gaps (
	began INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	why   TEXT NOT NULL
);
CREATE INDEX gaps_ended ON gaps (ended);

-- The only row: the first and the last sample, and from when on every interval is
-- stored.
CREATE TABLE state (
	since  INTEGER NOT NULL,
	seen   INTEGER NOT NULL,
	detail INTEGER NOT NULL
);
INSERT INTO state VALUES (0, 0, 0);
