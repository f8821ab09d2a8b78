package main

import (
	"path/filepath"
	"strconv"
	"time"
)

// consoleComponent is the product itself, started as anybody would start it.
func consoleComponent(l layout, binary string, port int) (*component, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	return &component{
		name:  consoleName,
		spec:  spec{path: path, env: []string{"KUBECONFIG=" + l.kubeconfig(), "KUOTA_LISTEN=" + loopback(port)}},
		ready: httpOK(healthClient, consoleURL(port)+"/readyz"),
		grace: 3 * time.Second,
		limit: time.Minute,
		ports: []namedPort{{"http", port}},
	}, nil
}

func consoleURL(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
