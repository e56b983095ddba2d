#pragma once

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))
