// In the place of glibc's header of this name, which libstdc++ includes: the variable that it
// declares came with glibc 2.32. Saying "several threads" is always right, and costs an atomic.
#pragma once

static const char __libc_single_threaded = 0;
