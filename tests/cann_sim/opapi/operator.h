// OPERATOR(Name, parameters) { body } defines aclnnName and aclnnNameGetWorkspaceSize.
//
// The parameters are aclnn's, in aclnn's order, with the types of arguments.h. op-plugin
// deduces the C type of a call from the arguments it has at hand, so a number's type must be
// the one it passes: int8_t for a cube_math_type, a float is no double.
#pragma once

#include <atomic>
#include <memory>

#include "arguments.h"
#include "export.h"

// Planned by the first function of a pair, run and deleted by the second.
struct aclOpExecutor {
  virtual ~aclOpExecutor() = default;
  virtual void run() = 0;
  const char* name = nullptr;
};

namespace sim {

// One per operator: how often it ran, and its place in the list of all operators.
struct Kernel {
  explicit Kernel(const char* aclnn_name);
  const char* name;
  std::atomic<uint64_t> runs{0};
  Kernel* next;
};

// CANN_SIM_HIDE names the operators that this libopapi.so pretends not to have.
bool is_hidden(const char* aclnn_name);

int plan_failed(const char* name, const std::exception& error);
int run(Kernel& kernel, aclOpExecutor* planned);

using Symbol = int (*)();

template <auto body, Kernel& kernel>
struct Pair;

template <typename... Parameters, void (*body)(Parameters...), Kernel& kernel>
struct Pair<body, kernel> {
  struct Planned final : aclOpExecutor {
    explicit Planned(typename Argument<Parameters>::Handle... handles)
        : kept(Argument<Parameters>::keep(handles)...) {}
    void run() override {
      std::apply(
          [](const auto&... each) { body(Argument<Parameters>::open(each)...); }, kept);
    }
    std::tuple<typename Argument<Parameters>::Kept...> kept;
  };

  static int plan(typename Argument<Parameters>::Handle... handles, uint64_t* workspace_size,
                  aclOpExecutor** executor) try {
    *workspace_size = 0;
    *executor = new Planned(handles...);
    return 0;
  } catch (const std::exception& error) {
    return plan_failed(kernel.name, error);
  }

  static int execute(void*, uint64_t, aclOpExecutor* planned, void*) {
    return run(kernel, planned);
  }
};

}  // namespace sim

// The exported names are indirect functions: what a lookup finds is decided when it asks, which
// is how a hidden operator is not found.
#define OPERATOR(Name, ...)                                                                     \
  static void Name##Body(__VA_ARGS__);                                                          \
  static sim::Kernel Name##Kernel("aclnn" #Name);                                               \
  extern "C" __attribute__((used)) sim::Symbol Name##FindPlan() {                               \
    if (sim::is_hidden("aclnn" #Name)) return nullptr;                                          \
    return reinterpret_cast<sim::Symbol>(&sim::Pair<&Name##Body, Name##Kernel>::plan);          \
  }                                                                                             \
  extern "C" __attribute__((used)) sim::Symbol Name##FindRun() {                                \
    if (sim::is_hidden("aclnn" #Name)) return nullptr;                                          \
    return reinterpret_cast<sim::Symbol>(&sim::Pair<&Name##Body, Name##Kernel>::execute);       \
  }                                                                                             \
  SIM_EXPORT int aclnn##Name##GetWorkspaceSize() __attribute__((ifunc(#Name "FindPlan")));      \
  SIM_EXPORT int aclnn##Name() __attribute__((ifunc(#Name "FindRun")));                         \
  static void Name##Body(__VA_ARGS__)

using sim::DType;
using sim::Ints;
using sim::OptionalInts;
using sim::OptionalScalar;
using sim::Out;
using sim::Outs;
using sim::Scalar;
using sim::Tensor;
using sim::Tensors;
