#include "boundary_link.h"

#include <dlfcn.h>

#include "boundary/boundary.h"
#include "page_writer.h"

namespace nfe {
namespace {

static_assert(static_cast<int>(Boundary::kNone) == NFE_BOUNDARY_NONE);
static_assert(static_cast<int>(Boundary::kPartial) == NFE_BOUNDARY_PARTIAL);
static_assert(static_cast<int>(Boundary::kFull) == NFE_BOUNDARY_FULL);
static_assert(static_cast<int>(Direction::kDeviceToHost) == NFE_BOUNDARY_D2H);
static_assert(static_cast<int>(Direction::kHostToDevice) == NFE_BOUNDARY_H2D);
// The library adds to these words with the compiler's atomics: same size, same bits.
static_assert(sizeof(Counter) == sizeof(std::uint64_t));
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// A copy is a count like any other: the first one in a forked child makes its page, and making it
// attaches it.
void make_page() noexcept { PageWriter::instance().page(); }

}  // namespace

void attach_boundary(Page& page) noexcept {
  // Looked up in the global scope, where LD_PRELOAD and RTLD_GLOBAL put it; linking to it would
  // load it in every process, and too late.
  const auto attach = reinterpret_cast<nfe_boundary_attach_function>(
      dlsym(RTLD_DEFAULT, "nfe_boundary_attach"));
  if (attach == nullptr) return;
  Header& header = page.header;
  const nfe_boundary_target target{
      NFE_BOUNDARY_VERSION,
      reinterpret_cast<std::uint64_t*>(header.driver_bytes),
      reinterpret_cast<std::uint64_t*>(header.driver_transfers),
      reinterpret_cast<std::uint32_t*>(&header.boundary),
      &make_page,
  };
  attach(&target);  // refused by a library of another version: the boundary stays unwatched
}

}  // namespace nfe
