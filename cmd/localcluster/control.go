package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// request and response are one line of JSON each, over a socket that only the
// user of the instance can open.
type request struct {
	Command   string `json:"command"` // stop, start, status, reset or down
	Component string `json:"component,omitempty"`
}

type response struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// longestSocket is what fits in a socket address, with room to spare.
const longestSocket = 100

// listenControl opens the socket in the run folder, or in a temporary folder
// where that path is too long; run/control says where.
func listenControl(l layout) (net.Listener, func(), error) {
	path, cleanup := l.run("control.sock"), func() {}
	if len(path) > longestSocket {
		dir, err := os.MkdirTemp("", "localcluster-")
		if err != nil {
			return nil, nil, fmt.Errorf("folder of control socket: %w", err)
		}
		path, cleanup = filepath.Join(dir, "control.sock"), func() { os.RemoveAll(dir) }
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		cleanup()
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, fmt.Errorf("protect control socket: %w", err)
	}
	if err := os.WriteFile(l.run("control"), []byte(path+"\n"), 0o600); err != nil {
		return nil, nil, fmt.Errorf("record control socket: %w", err)
	}
	return listener, cleanup, nil
}

// serveControl answers until the listener is closed. quit is called for down.
func (s *supervisor) serveControl(ctx context.Context, listener net.Listener, quit func()) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var req request
			if err := json.NewDecoder(conn).Decode(&req); err != nil {
				return
			}
			text, err := s.answer(ctx, req, quit)
			resp := response{Text: text}
			if err != nil {
				resp.Error = err.Error()
			}
			_ = json.NewEncoder(conn).Encode(resp)
		}()
	}
}

func (s *supervisor) answer(ctx context.Context, req request, quit func()) (string, error) {
	switch req.Command {
	case "stop":
		return s.stopOne(req.Component)
	case "start":
		return s.startOne(ctx, req.Component)
	case "status":
		return s.status(), nil
	case "reset":
		return s.reset(ctx)
	case "down":
		quit()
		return "stopping", nil
	}
	return "", fmt.Errorf("unknown command %q", req.Command)
}

// ask sends one request to the instance of a folder.
func ask(l layout, req request) (string, error) {
	b, err := os.ReadFile(l.run("control"))
	if err != nil {
		return "", fmt.Errorf("no control socket in %s: %w", l.dir, err)
	}
	conn, err := net.Dial("unix", strings.TrimSpace(string(b)))
	if err != nil {
		return "", fmt.Errorf("reach the instance in %s: %w", l.dir, err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return "", fmt.Errorf("ask the instance: %w", err)
	}
	var resp response
	if err := json.NewDecoder(conn).Decode(&resp); err != nil {
		return "", fmt.Errorf("the instance gave no answer: %w", err)
	}
	if resp.Error != "" {
		return "", errors.New(resp.Error)
	}
	return resp.Text, nil
}
