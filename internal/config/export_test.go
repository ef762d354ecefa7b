package config

import (
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/policy"
)

// SpawnTool is spawnTool.
type SpawnTool = spawnTool

// KnownKeys lists the keys that each section takes.
func KnownKeys() map[string][]string {
	var d decoder
	all := map[string][]string{
		"":           keys(d.fileMembers(&File{})),
		"limits":     keys(d.limitMembers(&Bounds{})),
		"retry":      keys(d.retryMembers(&Retry{})),
		"verify":     keys(d.verifyMembers(&[]string{})),
		"workspace":  keys(d.workspaceMembers(&worktree.Spec{})),
		"provider":   keys(d.providerMembers(&Provider{})),
		"context":    keys(d.contextMembers(&Context{})),
		"rubric":     keys(d.rubricMembers(&Rubric{})),
		"result":     keys(d.resultMembers(nil)),
		"content":    keys(d.contentMembers(nil)),
		"rule":       keys(d.ruleMembers(&Rule{})),
		"tool":       keys(d.toolMembers(&ToolSpec{})),
		"files":      keys(d.filesMembers(&FilesTool{})),
		"spawn":      keys(d.spawnMembers(&spawnTool{})),
		"execTool":   keys(d.execToolMembers(&ExecTool{})),
		"httpTool":   keys(d.httpToolMembers(&HTTPTool{})),
		"mcp":        keys(d.mcpMembers(&MCPTools{})),
		"hook":       keys(d.hookMembers(&hook.Definition{})),
		"hmac":       keys(d.hmacMembers(&hook.HMAC{})),
		"hookLimits": keys(d.hookLimitMembers(&hook.Limits{})),
		"schedule":   keys(d.scheduleMembers(&Schedule{}, nil)),
		"catchUp":    keys(d.catchUpMembers(&Schedule{})),
		"endpoint":   keys(d.endpointMembers(&endpoint.Definition{}, nil)),
		"notifyExec": keys(d.notifyExecMembers(&endpoint.Exec{})),
		"notifySMTP": keys(d.notifySMTPMembers(&endpoint.SMTP{})),
		"quiet":      keys(d.quietMembers(&endpoint.Quiet{})),
		"when":       keys(d.whenMembers(&When{})),
		"policy":     keys(d.policyMembers(&policy.Rule{})),
		"preset":     keys(d.presetMembers(nil)),
		"override":   keys(d.overrideMembers(&ToolRule{})),
	}
	for _, kind := range kinds() {
		a := defaultsOf(kind)
		all[kind] = keys(d.agentMembers(&a, kind))
	}
	return all
}

var (
	BadName        = badName
	Quote          = quote
	AsList         = asList
	ParseDuration  = parseDuration
	FormatDuration = formatDuration
	ParseSize      = parseSize
	FormatSize     = formatSize
	Nearest        = nearest
	Defaults       = defaults
	DefaultsOf     = defaultsOf
	KindNames      = kinds
	RuleNames      = ruleNames
	WrittenRule    = writtenRule
	BuiltIn        = builtIn
)
