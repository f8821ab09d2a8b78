package change

// Actions of an Object.
const (
	Created = "created"
	Changed = "changed"
	Removed = "removed"
)

// Object is one Kubernetes object that a save would create, change or remove.
type Object struct {
	Kind, Name string
	Action     string // Created, Changed or Removed
	Fields     []Field
}

// Field is one value before and after; empty where there is none.
type Field struct{ Path, Before, After string }
