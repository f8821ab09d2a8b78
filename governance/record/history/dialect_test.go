package history

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// A container with a read-only root file system has no folder for temporary files.
func TestSQLiteSortsInMemory(t *testing.T) {
	writer, reader, err := openSQLite(filepath.Join(t.TempDir(), "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	defer reader.Close()
	const memory = 2
	for name, pool := range map[string]*sql.DB{"writer": writer, "reader": reader} {
		var got int
		if err := pool.QueryRow("PRAGMA temp_store").Scan(&got); err != nil || got != memory {
			t.Errorf("temp_store of the %s is %d (%v), want %d", name, got, err, memory)
		}
	}
}
