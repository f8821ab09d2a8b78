# Gives each number of a CRD the bounds of its format, where it has none. Old API servers ignore
# formats, and one number that Go cannot hold would end the watch of its kind. Those of int64 are
# the integers that JSON has exactly.

/ format: int(32|64)$/ { bits = $2; has_maximum = has_minimum = 0 }
bits != "" && / maximum: / { has_maximum = 1 }
bits != "" && / minimum: / { has_minimum = 1 }
bits != "" && / type: integer$/ {
	indent = substr($0, 1, index($0, "type") - 1)
	if (!has_maximum) print indent "maximum: " (bits == "int32" ? "2147483647" : "9007199254740991")
	if (!has_minimum) print indent "minimum: " (bits == "int32" ? "-2147483648" : "-9007199254740991")
	bits = ""
}
{ print }
