-- Alerts, and which of them are silenced.

-- +goose Up
CREATE TABLE alerts (
	id        TEXT NOT NULL PRIMARY KEY, -- of one occurrence
	rule      TEXT NOT NULL,
	subject   TEXT NOT NULL, -- what it is about; with the rule it identifies an alert that is not resolved
	team      TEXT NOT NULL, -- empty for the cluster
	namespace TEXT NOT NULL, -- whose readers see it; empty for those who see all
	summary   TEXT NOT NULL,
	since     INTEGER NOT NULL,
	fired     INTEGER NOT NULL, -- 0 while it is pending
	resolved  INTEGER NOT NULL  -- 0 until it is resolved
);
CREATE INDEX alerts_resolved ON alerts (resolved, fired);
CREATE TABLE silences (
	id      TEXT NOT NULL PRIMARY KEY,
	rule    TEXT NOT NULL, -- empty for all
	team    TEXT NOT NULL, -- empty for all
	created INTEGER NOT NULL,
	until   INTEGER NOT NULL,
	actor   TEXT NOT NULL,
	reason  TEXT NOT NULL
);
CREATE TABLE notified ( -- what receivers know of alerts
	alert    TEXT NOT NULL,
	receiver TEXT NOT NULL,
	resolved INTEGER NOT NULL, -- 1 if its end too
	PRIMARY KEY (alert, receiver)
);
CREATE TABLE deliveries (
	id        TEXT NOT NULL PRIMARY KEY,
	receiver  TEXT NOT NULL,
	message   TEXT NOT NULL, -- JSON
	created   INTEGER NOT NULL,
	attempts  INTEGER NOT NULL,
	due       INTEGER NOT NULL, -- of the next attempt; 0 for none
	delivered INTEGER NOT NULL, -- 0 if it was not
	error     TEXT NOT NULL -- of the last attempt
);
CREATE INDEX deliveries_created ON deliveries (created);
