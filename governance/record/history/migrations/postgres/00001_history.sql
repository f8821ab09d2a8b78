-- Times are Unix milliseconds; 0 means none. Team '' stands for no team; team '*' of
-- rollups stands for all teams.

-- +goose Up
CREATE TABLE tasks (
	id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	uid         TEXT COLLATE "C" NOT NULL,
	namespace   TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	name        TEXT COLLATE "C" NOT NULL,
	team        TEXT COLLATE "C" NOT NULL,
	class       TEXT COLLATE "C" NOT NULL,
	priority    BIGINT NOT NULL,
	queue       TEXT COLLATE "C" NOT NULL,
	state       TEXT COLLATE "C" NOT NULL,
	pools       TEXT COLLATE "C" NOT NULL, -- JSON: names
	asked       TEXT COLLATE "C" NOT NULL, -- JSON: requests by resource
	submitted   BIGINT NOT NULL,
	ended       BIGINT NOT NULL,
	gone        BIGINT NOT NULL,
	preemptions BIGINT NOT NULL,
	ran_ms      BIGINT NOT NULL
);
CREATE UNIQUE INDEX tasks_uid ON tasks (uid);
CREATE INDEX tasks_submitted ON tasks (submitted);
CREATE INDEX tasks_team ON tasks (team, submitted);
CREATE INDEX tasks_name ON tasks (namespace, name, submitted);
CREATE INDEX tasks_there ON tasks (gone) WHERE gone = 0;

CREATE TABLE steps (
	id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task   BIGINT NOT NULL,
	part   TEXT COLLATE "C" NOT NULL,
	what   TEXT COLLATE "C" NOT NULL,
	at     BIGINT NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	text   TEXT COLLATE "C" NOT NULL,
	other  TEXT COLLATE "C" NOT NULL,    -- JSON: the other task, or empty
	ran_ms BIGINT NOT NULL, -- -1 if unknown
	size   BIGINT NOT NULL,
	UNIQUE (task, part, what, at)
);

CREATE TABLE spans (
	part  TEXT COLLATE "C" NOT NULL,
	kind  TEXT COLLATE "C" NOT NULL, -- wait or run
	began BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	team  TEXT COLLATE "C" NOT NULL,
	class TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX spans_once ON spans (part, kind, began);
CREATE INDEX spans_ended ON spans (ended);

-- Statistics of the spans that ended in an hour or a day.
CREATE TABLE class_hours (
	team         TEXT COLLATE "C" NOT NULL,
	start        BIGINT NOT NULL,
	class        TEXT COLLATE "C" NOT NULL,
	waits        BIGINT NOT NULL,
	wait_ms      BIGINT NOT NULL,
	longest_wait BIGINT NOT NULL,
	runs         BIGINT NOT NULL,
	run_ms       BIGINT NOT NULL,
	longest_run  BIGINT NOT NULL,
	PRIMARY KEY (team, start, class)
);
CREATE TABLE class_days (
	team         TEXT COLLATE "C" NOT NULL,
	start        BIGINT NOT NULL,
	class        TEXT COLLATE "C" NOT NULL,
	waits        BIGINT NOT NULL,
	wait_ms      BIGINT NOT NULL,
	longest_wait BIGINT NOT NULL,
	runs         BIGINT NOT NULL,
	run_ms       BIGINT NOT NULL,
	longest_run  BIGINT NOT NULL,
	PRIMARY KEY (team, start, class)
);

CREATE TABLE holders (
	id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	team     TEXT COLLATE "C" NOT NULL,
	pool     TEXT COLLATE "C" NOT NULL,
	resource TEXT COLLATE "C" NOT NULL,
	measure  TEXT COLLATE "C" NOT NULL,
	UNIQUE (team, pool, resource, measure)
);

-- The current value of each series, and the intervals that ended.
CREATE TABLE open_amounts (
	holder BIGINT PRIMARY KEY,
	began  BIGINT NOT NULL,
	amount BIGINT NOT NULL
);
CREATE TABLE amounts (
	holder BIGINT NOT NULL,
	began  BIGINT NOT NULL,
	ended  BIGINT NOT NULL,
	amount BIGINT NOT NULL,
	PRIMARY KEY (holder, began)
);

-- Integrals of intervals that ended: over each of times consecutive hours or days,
-- amount × ms, and the ms in which the amount is known.
CREATE TABLE amount_hours (
	holder    BIGINT NOT NULL,
	start     BIGINT NOT NULL,
	times     BIGINT NOT NULL,
	amount_ms BIGINT NOT NULL,
	known_ms  BIGINT NOT NULL,
	PRIMARY KEY (holder, start)
);
CREATE TABLE amount_days (
	holder    BIGINT NOT NULL,
	start     BIGINT NOT NULL,
	times     BIGINT NOT NULL,
	amount_ms BIGINT NOT NULL,
	known_ms  BIGINT NOT NULL,
	PRIMARY KEY (holder, start)
);

CREATE TABLE gaps (
	began BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	why   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX gaps_ended ON gaps (ended);

-- The only row: the first and the last sample, and from when on every interval is
-- stored.
CREATE TABLE state (
	since  BIGINT NOT NULL,
	seen   BIGINT NOT NULL,
	detail BIGINT NOT NULL
);
INSERT INTO state VALUES (0, 0, 0);
