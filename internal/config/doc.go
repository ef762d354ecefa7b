// Package config reads stint.yaml: the store, the agents that sessions are begun with,
// and the hooks that begin them. It leaves running them to others.
//
// Reading is strict. A key that is not known, a value of another type, a limit
// that is out of range: each is an error that names file, line, column and the
// path of the key, shows the line, and says what to write instead. All problems
// of a file are reported together. What is not needed is refused rather than
// passed over: anchors, aliases, tags and merge keys, several documents, and
// keys that would have no effect beside others.
//
// Agents are of four kinds: programs (exec), models with tools (llm), URLs (http) and
// agents with a command line of their own (cli). A key that a kind has no use for is an
// error that says what to write instead. Models name a provider, of which the agent gets
// the whole: two files that describe the same agent give the same definition.
//
// Hooks are compiled as they are read, so that an expression is wrong at its character.
// [Load] refuses a file with a hook that is wrong; [LoadServing] leaves it out and says so.
//
// What comes out is resolved: defaults are filled in and paths are joined to the
// folder of the file. [Agent.Definition] is that agent as canonical JSON, which
// the first entry of a session carries and its hash pins. References to secrets
// stay references until the agent starts, see [Agent.ResolveEnv], [Provider.Resolve],
// [HTTP.Resolve], [HookSecrets] and, for tools, [Resolve].
package config
