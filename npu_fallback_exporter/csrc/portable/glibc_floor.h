// Included before everything else, so that what is compiled here also loads where glibc is older,
// down to 2.28: these functions got new versions in glibc 2.34, when they moved into libc.so.6, and
// are the same under their first ones. (The stat family has none to link to before 2.33:
// file_status.h; waiting with a clock: patient_condition.h.)
#pragma once

#if defined(__x86_64__)
#define NFE_FIRST_VERSION "GLIBC_2.2.5"
#define NFE_SETCLOCK_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define NFE_FIRST_VERSION "GLIBC_2.17"
#define NFE_SETCLOCK_VERSION "GLIBC_2.17"
#endif

#ifdef NFE_FIRST_VERSION
#define NFE_OLD(name) __asm__(".symver " #name "," #name "@" NFE_FIRST_VERSION)
NFE_OLD(dladdr);
NFE_OLD(dlopen);
#ifndef NFE_DEFINES_DLSYM
NFE_OLD(dlsym);
#endif
NFE_OLD(dlvsym);
NFE_OLD(pthread_create);
NFE_OLD(pthread_mutex_trylock);
NFE_OLD(pthread_once);
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@" NFE_SETCLOCK_VERSION);
#endif
