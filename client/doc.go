// Package client asks a stint server what a store is asked, and gives it orders.
//
// A [Client] is a [stint.Reader], a [stint.Sender] and the reading half of [stint.Blobs]:
// what works on a store works on a server, with nothing left out of what it reads. Beside
// that it starts sessions, watches events and asks how the server is.
//
//	c, err := client.New(client.Options{URL: "https://stint.example.com", Token: token})
//	started, err := c.Start(ctx, client.Start{Agent: "triage", Prompt: "issues of today", Key: "2026-11-30"})
//	for event, err := range c.Events(ctx, client.Watch{Session: started.ID}) { … }
//
// Errors are those of package stint, with the code and the hint that the server gave. One
// that comes of the way to the server is [stint.Unavailable] and names it. What may be
// repeated is tried again: reads, messages, which have an id, and starts that have a key;
// after the time that the server asks for, else after one that doubles.
package client
