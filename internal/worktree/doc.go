// Package worktree gives each session of an agent a git worktree of its own, and each
// of its lines a branch, so that the files of a session go back with it.
//
// What is kept is in the repository alone, as commits under names that say whose they
// are:
//
//	refs/heads/stint/SESSION/LINE           the branch of a line
//	refs/stint/SESSION/LINE/LOOP            the files at the end of a loop; LOOP before a
//	                                        line's first one is what the line began with
//	refs/stint/SESSION/left/LINE-LOOP-N     what was found and is no loop's: files of a
//	                                        loop that broke off, or a person's
//
// A loop begins with the files of the loop before it, and what else lies in the folder is
// committed before it is taken away. Files that git ignores, and repositories within the
// worktree, are left alone.
//
// The git commands that it runs obey nothing that an agent can write below its folder: they
// are told where the repository is, run no hooks and no filters, sign nothing, and read no
// configuration but the repository's.
package worktree
