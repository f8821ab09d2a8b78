-- What tasks were submitted as, to submit them again after they were deleted.

-- +goose Up
CREATE TABLE manifests (
	uid  TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of the task
	kept BIGINT NOT NULL,
	text BYTEA NOT NULL -- gzip of YAML
);
CREATE INDEX manifests_kept ON manifests (kept);
