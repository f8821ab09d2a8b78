-- Who did what.

-- +goose Up
CREATE TABLE activity (
	id        TEXT NOT NULL PRIMARY KEY, -- of the request; an entry that is recorded again is the same row
	at        INTEGER NOT NULL,
	actor     TEXT NOT NULL, -- user; empty if unknown
	address   TEXT NOT NULL, -- that the request came from
	source    TEXT NOT NULL,
	action    TEXT NOT NULL,
	kind      TEXT NOT NULL,
	namespace TEXT NOT NULL, -- empty for objects of the cluster
	name      TEXT NOT NULL,
	uid       TEXT NOT NULL,
	team      TEXT NOT NULL,
	changes   TEXT NOT NULL, -- JSON list of lines; empty for none
	reason    TEXT NOT NULL,
	outcome   TEXT NOT NULL,
	error     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX activity_at ON activity (at, id);
CREATE INDEX activity_team ON activity (team, at, id);
CREATE INDEX activity_uid ON activity (uid, at);
