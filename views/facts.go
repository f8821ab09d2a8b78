package views

// ValueLine is a named value.
type ValueLine struct{ Name, Value string }

// NamedLink is a name with the address of its page; empty for none.
type NamedLink struct{ Name, URL string }

// Spaced returns a word with a space behind it; empty for none.
func Spaced(word string) string {
	if word == "" {
		return ""
	}
	return word + " "
}
