package submit

// For tests of the external package.
var (
	FullRuntime  = fullRuntime
	RestoreCount = restoreCount
	NextName     = nextName
)
