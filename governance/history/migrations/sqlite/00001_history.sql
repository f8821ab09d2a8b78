-- Times are Unix milliseconds, and 0 where there is none. Team '' is that of what
-- belongs to no team, team '*' of rollups stands for all together.

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
	asked       TEXT NOT NULL, -- JSON: amounts by resource
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
	other  TEXT NOT NULL,    -- JSON: the other party, or empty
	ran_ms INTEGER NOT NULL, -- -1 where it is not known
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

-- Sums of the spans that ended in an hour or a day.
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

-- Amounts that hold until they change, and those that held.
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

-- Integrals of amounts that held: in each of so many hours or days in a row,
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

-- The only row: from when and until when amounts are known, and from when on in
-- detail.
CREATE TABLE state (
	since  INTEGER NOT NULL,
	seen   INTEGER NOT NULL,
	detail INTEGER NOT NULL
);
INSERT INTO state VALUES (0, 0, 0);
