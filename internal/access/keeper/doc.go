// Package keeper keeps the tokens of a server in its system journal, so that they are
// durable with who made and who revoked them, and go where the store goes. It implements
// [access.Keeper] and [access.Redeemer].
//
// Tokens are few and are held in memory; a change is durable before it counts.
package keeper
