// Package acceptance tests the whole product from outside. Its tests build the
// real binary, and a second one with fault points; they start sessions, kill what
// runs them at chosen and at random instants, stop it, starve it of disk and of
// time, cut files short, and then ask the plain binary what is left.
//
// What must hold after every one of these is the same list, and one function looks
// at all of it: everything that was acknowledged is there, the journals verify,
// nothing says that it runs while nobody holds it, and the session can be brought
// to the end that it would have reached undisturbed. The agent of these tests
// writes each effect into a ledger that is synced before the effect is reported, so
// that an effect done twice is seen where it happens and not where it is recorded.
//
// STINT_LONG=1 makes the rigs run at full size. Those that mount file systems run
// as root only, and say so loudly elsewhere. STINT_SEED repeats the random choices
// of tests that failed.
package acceptance
