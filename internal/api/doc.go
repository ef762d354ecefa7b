// Package api answers over HTTP what the command line answers on a terminal, with the same
// documents: reads go through package view, commands become messages in an inbox or go
// through the interfaces of [Options]. It writes no journal.
//
// Each route is registered together with its row of the access table, so that none can be
// without one; who may is decided by package guard, before a handler runs. Handlers ask
// guard.From who is there only where an answer depends on it.
//
// Requests are read strictly: a member that is not known, one that is there twice or in
// other letters, an unknown or repeated parameter, a body that is too long are refused
// before anything happens. Refusals are problems by RFC 9457 with the codes of package
// stint; docs/api.md is the contract.
package api
