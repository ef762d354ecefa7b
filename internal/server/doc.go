// Package server is the life of a server around its handler: where it listens, how it
// takes what people ask of it by message, how it tells the system that it lives, and how
// it ends. What it serves is put together by package main.
package server
