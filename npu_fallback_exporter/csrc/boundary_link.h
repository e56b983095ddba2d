// The hook's side of the driver boundary (boundary/boundary.h).
#pragma once

#include "page_layout.h"

namespace nfe {

// Lets the boundary library, if it is loaded, count in `page` from now on. A forked child calls
// this again for its own page.
void attach_boundary(Page& page) noexcept;

}  // namespace nfe
