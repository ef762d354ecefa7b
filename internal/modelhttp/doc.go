// Package modelhttp is what the model providers that speak HTTP share: one exchange with
// its time limits and a bounded copy of what came, and what an answer that is no answer
// means. It knows no provider's format of an answer.
package modelhttp
