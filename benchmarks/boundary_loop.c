// Calls one function that copies in a loop: what Python adds per call would hide the difference.
#include <stddef.h>

typedef int copy_function(void*, size_t, const void*, size_t, int);

void copy_often(copy_function* copy, size_t calls, int kind) {
  for (size_t call = 0; call < calls; ++call) copy(NULL, 64, NULL, 64, kind);
}

typedef void* look_up_function(void*, const char*);

void look_up_often(look_up_function* look_up, size_t calls, void* handle) {
  for (size_t call = 0; call < calls; ++call) look_up(handle, "malloc");
}
