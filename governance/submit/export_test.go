package submit

// FullRuntime is for tests of the external package.
var FullRuntime = fullRuntime
