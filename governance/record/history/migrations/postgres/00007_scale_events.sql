-- Changes of the size of elastic tasks.

-- +goose Up
CREATE TABLE scale_events (
	task        TEXT COLLATE "C" NOT NULL, -- UID
	number      BIGINT NOT NULL, -- counts the events of a task from 1, without gaps
	at          BIGINT NOT NULL,
	namespace   TEXT COLLATE "C" NOT NULL,
	name        TEXT COLLATE "C" NOT NULL,
	team        TEXT COLLATE "C" NOT NULL,
	cause       TEXT COLLATE "C" NOT NULL,
	pods_before BIGINT NOT NULL,
	pods        BIGINT NOT NULL,
	minimum     BIGINT NOT NULL, -- of pods, those that are not growth
	accelerator TEXT COLLATE "C" NOT NULL, -- resource; empty for none
	per_pod     BIGINT NOT NULL, -- accelerators
	changed_by  TEXT COLLATE "C" NOT NULL, -- user
	node        TEXT COLLATE "C" NOT NULL,
	other_part  TEXT COLLATE "C" NOT NULL, -- UID of the Workload that the pods were preempted or withdrawn for
	other       TEXT COLLATE "C" NOT NULL, -- its task, as JSON; empty if unknown
	idle        TEXT COLLATE "C" NOT NULL, -- whose idle quota growth uses, as JSON; empty if unknown
	PRIMARY KEY (task, number)
);
CREATE INDEX scale_events_at ON scale_events (at);
