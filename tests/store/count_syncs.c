/* Loaded before the C library (LD_PRELOAD): counts the process's calls of fsync and fdatasync that succeeded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

static atomic_int count;

int turnwire_syncs(void) { return atomic_load(&count); }

static int counted(const char *name, int descriptor) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  int result = real(descriptor);
  if (result == 0) atomic_fetch_add(&count, 1);
  return result;
}

int fsync(int descriptor) { return counted("fsync", descriptor); }

int fdatasync(int descriptor) { return counted("fdatasync", descriptor); }
