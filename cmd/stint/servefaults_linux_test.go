package main

import "testing"

// Nobody can make a file in /sys, not even root.
func TestServeWhereNothingCanBeWritten(t *testing.T) {
	d := newDesk(t)
	d.fails(exitUnavailable, "check the folder beside the database, and that it is this user's", "serve", "--addr", "127.0.0.1:0", "--store", "sqlite:/sys/stint.db")
	d.fails(exitUnavailable, "check the folder beside the database, and that it is this user's", "serve", "--addr", "127.0.0.1:0", "--store", "sqlite:/sys/folder/stint.db")
}
