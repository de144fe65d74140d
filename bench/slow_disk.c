/* Makes a disk slower: each fsync takes SYNC_US microseconds more, in which the processor is free, as with a real one.
 * Loaded before libc by bench/workloads/disks.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void wait_more(void) {
    static long us = -1;
    if (us < 0) {
        const char *set = getenv("SYNC_US");
        us = set ? atol(set) : 0;
    }
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, 0);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_more();
    return real(file);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_more();
    return real(file);
}
