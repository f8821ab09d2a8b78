package history

import (
	"context"
	"io/fs"
	"log/slog"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// nextMigration is what a newer version may do to the tables.
const nextMigration = `-- +goose Up
ALTER TABLE tasks ADD COLUMN next TEXT NOT NULL DEFAULT 'x';
ALTER TABLE steps ADD COLUMN next BIGINT;
ALTER TABLE amounts ADD COLUMN next BIGINT NOT NULL DEFAULT 1;
CREATE TABLE next (id BIGINT PRIMARY KEY);
`

// testNewerSchema runs this version on tables that a newer version migrated, as after a
// rollback.
func testNewerSchema(t *testing.T, newURL func(testing.TB) string) {
	for name, test := range map[string]func(*testing.T, string){
		"Tasks":   testTasks,
		"Loops":   testLoops,
		"Samples": testSamples,
		"Terms":   testTerms,
	} {
		t.Run(name, func(t *testing.T) {
			url := newURL(t)
			migrateToNext(t, url)
			test(t, url)
		})
	}
}

// migrateToNext migrates a database as a newer version with nextMigration does.
func migrateToNext(t *testing.T, url string) {
	t.Helper()
	s := open(t, url, Options{})
	files, err := fs.Sub(migrations, "migrations")
	ok(t, err)
	next := fstest.MapFS{}
	names, err := fs.Glob(files, s.folder+"/*.sql")
	ok(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		ok(t, err)
		next["migrations/"+name] = &fstest.MapFile{Data: text}
	}
	next["migrations/"+s.folder+"/90000_next.sql"] = &fstest.MapFile{Data: []byte(nextMigration)}
	ok(t, s.migrateWith(context.Background(), next, s.writer, slog.New(slog.DiscardHandler)))
	var version int64
	ok(t, s.writer.QueryRowContext(context.Background(), "SELECT max(version_id) FROM goose_db_version").Scan(&version))
	if version != 90000 {
		t.Fatalf("the tables have version %d, want that of the newer version", version)
	}
	ok(t, s.Close())
}

// additive are the statements that leave tables usable for the previous version: it
// neither knows the new columns nor writes them.
var additive = regexp.MustCompile(`^(CREATE TABLE|CREATE INDEX|ALTER TABLE \w+ ADD COLUMN \w+ [A-Z "]+( NOT NULL DEFAULT [^,]+| DEFAULT [^,]+)?$|INSERT INTO)`)

// firstAdditive is the first migration after the first release. The names of states
// changed before it.
const firstAdditive = "00006"

// problemsOf returns the statements of a migration with which the previous version
// would fail.
func problemsOf(migration string) (problems []string) {
	var lines []string
	for line := range strings.Lines(migration) {
		line, _, _ = strings.Cut(line, "--")
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, statement := range strings.Split(strings.Join(lines, " "), ";") {
		statement = strings.TrimSpace(statement)
		if statement != "" && (!additive.MatchString(statement) || strings.Contains(statement, " NOT NULL") && strings.HasPrefix(statement, "ALTER") && !strings.Contains(statement, " DEFAULT ")) {
			problems = append(problems, statement)
		}
	}
	return problems
}

// TestMigrationsAllowRollback checks that the previous version works on the tables of
// this one.
func TestMigrationsAllowRollback(t *testing.T) {
	err := fs.WalkDir(migrations, "migrations", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) < firstAdditive {
			return err
		}
		text, err := migrations.ReadFile(name)
		for _, problem := range problemsOf(string(text)) {
			t.Errorf("%s: the previous version does not work after a rollback: %s", name, problem)
		}
		return err
	})
	ok(t, err)
	if problems := problemsOf(nextMigration); len(problems) > 0 {
		t.Errorf("got problems %q, want none", problems)
	}
	for _, statement := range []string{"DROP TABLE tasks;", "UPDATE tasks SET state = 'a';", "ALTER TABLE tasks ADD COLUMN a TEXT NOT NULL;", "ALTER TABLE tasks DROP COLUMN a;", "ALTER TABLE tasks RENAME COLUMN a TO b;", "CREATE UNIQUE INDEX a ON tasks (name);"} {
		if len(problemsOf(statement)) != 1 {
			t.Errorf("got no problem with %s", statement)
		}
	}
}
