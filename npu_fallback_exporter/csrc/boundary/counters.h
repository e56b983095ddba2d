// Where counts go, and what this library knows that it does not know.
#pragma once

#include <stdint.h>

// Why coverage cannot be full, noticed at run time. Never taken back.
enum nfe_gap {
  NFE_GAP_UNJUDGED = 1,      // a copy came through whose direction or size cannot be told
  NFE_GAP_UNKNOWN_FORM = 2,  // somebody holds a copying function that is not in forms.h
  NFE_GAP_OTHER_COPY = 4,    // somebody holds another definition of a function in forms.h
};

void nfe_count(int direction, uint64_t bytes, uint64_t transfers);
void nfe_note_gap(enum nfe_gap gap);
unsigned nfe_gaps(void);
