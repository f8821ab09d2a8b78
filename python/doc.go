// Package python has the Python library that trainings use, for recipes, whose images lack it.
package python

import "embed"

// Elastic is the folder kuota/elastic.
//
//go:embed kuota/elastic/*.py
var Elastic embed.FS
