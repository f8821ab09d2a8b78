-- Who did what.

-- +goose Up
CREATE TABLE activity (
	id        TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of the request; an entry that is recorded again is the same row
	at        BIGINT NOT NULL,
	actor     TEXT COLLATE "C" NOT NULL, -- user; empty if unknown
	address   TEXT COLLATE "C" NOT NULL, -- that the request came from
	source    TEXT COLLATE "C" NOT NULL,
	action    TEXT COLLATE "C" NOT NULL,
	kind      TEXT COLLATE "C" NOT NULL,
	namespace TEXT COLLATE "C" NOT NULL, -- empty for objects of the cluster
	name      TEXT COLLATE "C" NOT NULL,
	uid       TEXT COLLATE "C" NOT NULL,
	team      TEXT COLLATE "C" NOT NULL,
	changes   TEXT COLLATE "C" NOT NULL, -- JSON list of lines; empty for none
	reason    TEXT COLLATE "C" NOT NULL,
	outcome   TEXT COLLATE "C" NOT NULL,
	error     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX activity_at ON activity (at, id);
CREATE INDEX activity_team ON activity (team, at, id);
CREATE INDEX activity_uid ON activity (uid, at);
