package main

import (
	"os"
	"strings"
	"testing"
)

func TestCheckOwnedRefusesUnmarkedContents(t *testing.T) {
	l := layout{dir: t.TempDir()}
	precious := l.data("precious")
	if err := os.MkdirAll(l.path("data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.checkOwned(); err != nil {
		t.Errorf("an empty folder is refused: %v", err)
	}
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.checkOwned(); err == nil || !strings.Contains(err.Error(), l.path("data")) {
		t.Errorf("unmarked data is accepted: %v", err)
	}
}

func TestResetDeletesAllButTheLock(t *testing.T) {
	l := layout{dir: t.TempDir()}
	for range 2 {
		if err := l.checkOwned(); err != nil {
			t.Fatalf("a marked folder is refused: %v", err)
		}
		lock, err := lockInstance(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.reset(); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{l.data("old"), l.pki("old"), l.log("old"), l.run("old"), l.signin("old"), l.ready(), l.url()} {
			if _, err := os.Stat(f); err == nil {
				t.Errorf("%s remains from the last run", f)
			}
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !isRunning(l) {
			t.Error("the lock is not taken any more")
		}
		lock.Close()
	}
}

func TestSecondInstanceReportsHowToStopTheFirst(t *testing.T) {
	l := layout{dir: t.TempDir()}
	lock, err := lockInstance(l)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	_, err = lockInstance(l)
	if err == nil || !strings.Contains(err.Error(), "localcluster down --dir "+l.dir) {
		t.Errorf("the error is %v", err)
	}
}
