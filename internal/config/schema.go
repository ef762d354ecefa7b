package config

import (
	_ "embed"
	"slices"
)

//go:embed example.yaml
var example string

//go:embed config.schema.json
var schema []byte

// Example returns a commented stint.yaml with an agent that works as it is.
func Example() string { return example }

// Schema returns the JSON Schema (draft 2020-12) of stint.yaml, for editors. What
// [Parse] accepts it accepts; Parse refuses more. The caller may keep the bytes.
func Schema() []byte { return slices.Clone(schema) }
