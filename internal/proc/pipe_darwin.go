package proc

const fionread = 0x4004667f // _IOR('f', 127, int) in sys/filio.h
