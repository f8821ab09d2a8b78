package views

// ValueLine is a named value.
type ValueLine struct{ Name, Value string }
