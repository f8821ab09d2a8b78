package quota

// FlavorResource is one resource of one flavor, such as nvidia.com/gpu of
// ml-p5-48xlarge.
type FlavorResource struct{ Flavor, Resource string }

// FlavorResourceQuantities are quantities by flavor and resource, in the units
// of Resources.
type FlavorResourceQuantities map[FlavorResource]int64
