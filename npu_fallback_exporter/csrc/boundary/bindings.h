// Which calls and look-ups of the loaded objects come through this library.
#pragma once

#include "boundary.h"

enum nfe_boundary_coverage nfe_bindings_coverage(void);
