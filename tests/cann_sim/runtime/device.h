// What the simulated machine is made of.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sim {

bool initialised();
int device_count();                // CANN_SIM_DEVICES
uint64_t device_memory();          // CANN_SIM_MEMORY_GB, in bytes
int current_device_or(int other);  // the calling thread's device

// Waits as long as an operation on a real device would take: exact enough for a demo,
// without burning a core on long waits.
void spend(double seconds);
double number_from_env(const char* name, double otherwise);

}  // namespace sim
