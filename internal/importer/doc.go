// Package importer makes what stint.yaml says of what other programs were told: of a
// user's crontab, agents that run its commands and schedules that begin them. Whoever
// calls it reads and writes the files.
//
// What a line means to cron it means to stint, or it is not taken over and the reason is
// told with its number. So a command that a shell has to read is given to one, and any
// other is not; it runs in the folder, with the variables and on the standard input that
// cron would give it; runs may overlap, and none is ended for its length.
package importer
