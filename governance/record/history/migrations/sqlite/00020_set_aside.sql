-- Records that the database refuses are kept here, so that those behind them are written.

-- +goose Up
CREATE TABLE set_aside (
	id     TEXT   NOT NULL PRIMARY KEY, -- digest of the record
	at     BIGINT NOT NULL,
	writer TEXT   NOT NULL,
	reason TEXT   NOT NULL,
	record TEXT   NOT NULL -- JSON
);
