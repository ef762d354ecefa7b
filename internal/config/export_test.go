package config

// KnownKeys lists the keys that each section takes.
func KnownKeys() map[string][]string {
	var d decoder
	var a Agent
	return map[string][]string{
		"":       keys(d.fileMembers(&File{})),
		"agent":  keys(d.agentMembers(&a)),
		"limits": keys(d.limitMembers(&a.Bounds)),
		"retry":  keys(d.retryMembers(&a.Retry)),
		"verify": keys(d.verifyMembers(&a.Command)),
	}
}

var (
	Quote          = quote
	AsList         = asList
	ParseDuration  = parseDuration
	FormatDuration = formatDuration
	ParseSize      = parseSize
	FormatSize     = formatSize
	Nearest        = nearest
	Defaults       = defaults
)
