-- Alerts, and which of them are silenced.

-- +goose Up
CREATE TABLE alerts (
	id        TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of one occurrence
	rule      TEXT COLLATE "C" NOT NULL,
	subject   TEXT COLLATE "C" NOT NULL, -- what it is about; with the rule it identifies an alert that is not resolved
	team      TEXT COLLATE "C" NOT NULL, -- empty for the cluster
	namespace TEXT COLLATE "C" NOT NULL, -- whose readers see it; empty for those who see all
	summary   TEXT COLLATE "C" NOT NULL,
	since     BIGINT NOT NULL,
	fired     BIGINT NOT NULL, -- 0 while it is pending
	resolved  BIGINT NOT NULL  -- 0 until it is resolved
);
CREATE INDEX alerts_resolved ON alerts (resolved, fired);
CREATE TABLE silences (
	id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	rule    TEXT COLLATE "C" NOT NULL, -- empty for all
	team    TEXT COLLATE "C" NOT NULL, -- empty for all
	created BIGINT NOT NULL,
	until   BIGINT NOT NULL,
	actor   TEXT COLLATE "C" NOT NULL,
	reason  TEXT COLLATE "C" NOT NULL
);
CREATE TABLE notified ( -- what receivers know of alerts
	alert    TEXT COLLATE "C" NOT NULL,
	receiver TEXT COLLATE "C" NOT NULL,
	resolved BIGINT NOT NULL, -- 1 if its end too
	PRIMARY KEY (alert, receiver)
);
CREATE TABLE deliveries (
	id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	receiver  TEXT COLLATE "C" NOT NULL,
	message   TEXT COLLATE "C" NOT NULL, -- JSON
	created   BIGINT NOT NULL,
	attempts  BIGINT NOT NULL,
	due       BIGINT NOT NULL, -- of the next attempt; 0 for none
	delivered BIGINT NOT NULL, -- 0 if it was not
	error     TEXT COLLATE "C" NOT NULL -- of the last attempt
);
CREATE INDEX deliveries_created ON deliveries (created);
