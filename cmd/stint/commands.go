package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// commands is the list of verbs; each has a file of its own.
func (a *app) commands() []*cobra.Command {
	groups := []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"run", []*cobra.Command{a.initCommand(), a.runCommand(), a.startCommand(), a.serveCommand(), a.devCommand()}},
		{"see", []*cobra.Command{a.psCommand(), a.showCommand(), a.treeCommand(), a.resultCommand(), a.logsCommand(), a.waitCommand(), a.exportCommand(), a.verifyCommand(), a.sqlCommand(), a.explainCommand()}},
		{"control", []*cobra.Command{a.sendCommand(), a.pauseCommand(), a.resumeCommand(), a.interruptCommand(), a.stopCommand(), a.killCommand(),
			a.restartCommand(), a.rollbackCommand(), a.branchCommand(), a.replayCommand(), a.diffCommand(), a.bisectCommand(), a.resolveCommand(), a.limitCommand(), a.approvalsCommand(), a.approveCommand(), a.denyCommand()}},
		{"manage", []*cobra.Command{a.agentCommand(), a.policyCommand(), a.workspaceCommand(), a.applyCommand(), a.contextCommand(), a.scheduleCommand(), a.hookCommand(), a.notifyCommand(), a.tokenCommand(), a.mcpCommand(), a.priceCommand(), a.dbCommand(), a.benchCommand(), a.completionCommand(), a.versionCommand()}},
	}
	var all []*cobra.Command
	for _, g := range groups {
		for _, c := range g.cmds {
			c.GroupID = g.id
			all = append(all, c)
		}
	}
	return all
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  stint version\n  stint version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			rev := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						rev = s.Value
					}
				}
			}
			if a.json {
				return a.printJSON(struct {
					Schema   string `json:"schema"`
					Version  string `json:"version"`
					Revision string `json:"revision,omitempty"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{"stint.version/1", version, rev, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			a.printf("stint %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return nil
		},
	}
}
