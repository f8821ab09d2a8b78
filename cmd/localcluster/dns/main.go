// Command dns is CoreDNS with the plugins that a real node needs. The module is its own,
// because CoreDNS would change the dependencies of the other binaries.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
