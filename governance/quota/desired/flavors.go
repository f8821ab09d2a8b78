package desired

// UsesFlavor reports whether an existing ResourceFlavor that Kuota does not manage
// can be the flavor of a pool as it is: it selects the labels that Kuota's own
// flavor would select, or only labels that all nodes of the pool have by the
// policy.
func (o Objects) UsesFlavor(name string, nodeLabels map[string]string) bool {
	for _, f := range o.Flavors {
		if *f.GetName() != name {
			continue
		}
		return includes(nodeLabels, f.Spec.NodeLabels) && len(nodeLabels) == len(f.Spec.NodeLabels) ||
			len(o.NodeLabels[name]) > 0 && includes(o.NodeLabels[name], nodeLabels)
	}
	return false
}

// includes reports whether all has each of some.
func includes(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
