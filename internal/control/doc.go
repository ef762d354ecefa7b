// Package control gives orders to sessions: what the command line and the HTTP API do
// alike. It checks an order against how the session stands, so that whoever gives it hears
// at once what the session's runner would refuse later; it sends the order as a message;
// and it has a session that nobody holds act on it.
//
// The errors are those of package stint, with hints for people.
package control
