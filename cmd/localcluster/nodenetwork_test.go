package main

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestNodeNetworksDoNotOverlap(t *testing.T) {
	const instances = (highestPort - lowestPort) / portBlock
	used := map[string]int{}
	services := netip.MustParsePrefix("10.96.0.0/16")
	for i := range instances {
		n := nodeNetwork{index: i}
		if len(n.link()) > 15 {
			t.Fatalf("%s is too long for the name of an interface", n.link())
		}
		link, pods := netip.MustParsePrefix(n.host()+"/30"), netip.MustParsePrefix(n.pods())
		if !link.Contains(netip.MustParseAddr(n.node())) || link.Overlaps(pods) || services.Overlaps(pods) || services.Overlaps(link) {
			t.Errorf("instance %d: host %s, node %s, pods %s", i, n.host(), n.node(), n.pods())
		}
		for _, prefix := range []netip.Prefix{link.Masked(), pods.Masked()} {
			if other, found := used[prefix.String()]; found {
				t.Errorf("instances %d and %d both have %s", other, i, prefix)
			}
			used[prefix.String()] = i
		}
	}
}

func TestCheckNodeSaysWhatIsMissing(t *testing.T) {
	want := "build --real-node"
	if os.Getuid() != 0 {
		want = "needs root"
	}
	if err := checkNode(t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an empty folder of binaries: error %v, want one with %q", err, want)
	}
}
