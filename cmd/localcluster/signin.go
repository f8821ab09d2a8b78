package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
)

// clientID is what the console is called at the provider.
const clientID = "kuota"

func (l layout) signin(name string) string { return l.path("signin", name) }

// writeSignIn puts down what the provider and the console have to agree on, and
// a copy of the users to edit while all runs.
func writeSignIn(l layout, users, issuer string) error {
	copied, err := os.ReadFile(users)
	if err != nil {
		return fmt.Errorf("read users: %w", err)
	}
	keys := make([]byte, 32)
	_, _ = rand.Read(keys) // never fails
	for name, content := range map[string]string{
		"issuer":        issuer + "\n",
		"client-id":     clientID + "\n",
		"client-secret": rand.Text() + "\n",
		"session-keys":  base64.StdEncoding.EncodeToString(keys) + "\n",
		"users.yaml":    string(copied),
	} {
		if err := os.WriteFile(l.signin(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write what signing in needs: %w", err)
		}
	}
	return nil
}
