// Package forms has what all forms share: the state of a form, its inputs and their
// errors, rows of inputs, numbers as people type them, values in addresses, and the
// way from typed values to a save. Pages own what a form edits: they parse and render.
//
//	values ──▶ state and inputs ──▶ errors? ──▶ form with errors
//	(POST or     (ReadForm,            │
//	 address)     ReadRows)            └─────▶ review ──▶ save ──▶ redirect
//
// Flow makes these decisions, and Addresses redirects each answer to an address that
// has the values, sealed. Inputs maps field errors to the inputs of a form.
package forms
