-- What an audit log said about objects that history does not know as tasks, until it does.

-- +goose Up
CREATE TABLE audited (
	id      TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of the entry of activity
	uid     TEXT COLLATE "C" NOT NULL, -- of the object
	at      BIGINT NOT NULL,
	actor   TEXT COLLATE "C" NOT NULL,
	address TEXT COLLATE "C" NOT NULL,
	action  TEXT COLLATE "C" NOT NULL,
	changes TEXT COLLATE "C" NOT NULL -- as in activity
);
CREATE INDEX audited_uid ON audited (uid);
