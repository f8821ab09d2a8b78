package policy

import (
	"slices"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"
)

// RowList is a list of rows of inputs, to which rows can be added. The inputs of row N of kind
// "price" are named price-N-part.
type RowList struct {
	Kind   string // such as "price", which the class and the ids begin with
	ID     string // of the list
	Label  string
	Row    string    // what one row is, such as "Price"
	First  string    // part of the first input of a row
	Heads  []ui.Head // of the cells
	Rows   []Row
	From   int    // number of the first row
	Empty  string // a sentence for a list without rows
	Add    string // text of the button that adds a row
	Full   string // why no row can be added; empty where one can
	Error  string // of the list
	NoteID string // of the element that describes the list; empty for none
}

// Row is one row of inputs.
type Row struct {
	Cells []Cell
	Rest  []Cell // closed inputs
	// RestTitle says what the closed inputs have.
	RestTitle string
	RestOpen  bool
	Notes     []string // what is true of it now
	Error     string   // of the row as a whole
}

// Cell is one input of a row.
type Cell struct {
	Part, Label string
	views.TextField
	Input   ui.InputProps
	Options []views.Option // of a menu; nil for a line of text
	Check   bool           // a check box, checked if it has a value
}

// invalid reports whether a closed input is invalid.
func (r Row) invalid() bool {
	return slices.ContainsFunc(r.Rest, func(c Cell) bool { return c.Error != "" })
}
