// Which address is whose: the simulation's answer to "host or device?".
#pragma once

#include "acl.h"

namespace sim {

struct Owner {
  Place place;
  int device;
};

Owner owner_of(const void* address);

}  // namespace sim
