-- What an audit log said about objects that history does not know as tasks, until it does.

-- +goose Up
CREATE TABLE audited (
	id      TEXT NOT NULL PRIMARY KEY, -- of the entry of activity
	uid     TEXT NOT NULL, -- of the object
	at      INTEGER NOT NULL,
	actor   TEXT NOT NULL,
	address TEXT NOT NULL,
	action  TEXT NOT NULL,
	changes TEXT NOT NULL -- as in activity
);
CREATE INDEX audited_uid ON audited (uid);
