// Keeps the process alive when somebody else cuts the page that it has mapped.
//
// Touching a mapped file behind its end raises SIGBUS, and nothing but a handler can prevent that
// from killing the process: files on a tmpfs cannot be sealed, and locks are advisory. The handler
// puts private memory in the place of the page and says so once; counting goes on there, unseen,
// so that whatever else the hook does (strict mode) stays in force.
//
// Shared state: the guarded page. Writers: guard_page and unguard_page, under the page writer's
// mutex or in a forked child. Reader: the signal handler, in any thread.
// Limits: threads that block SIGBUS, and handlers for it that are installed later and do not hand
// the signal on, are not protected.
#pragma once

#include "page_file.h"

namespace nfe {

// From now on `file` is guarded, and no other. Installs the handler at the first call; it hands
// every signal that is not about a page to the handler that was there before.
void guard_page(const PageFile& file);

void unguard_page() noexcept;

}  // namespace nfe
