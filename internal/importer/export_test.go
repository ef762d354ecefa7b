package importer

// Split and NameOf are tested by themselves.
var (
	Split  = split
	NameOf = nameOf
)
