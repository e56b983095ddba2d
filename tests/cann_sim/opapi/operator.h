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

namespace sim {
struct Kernel;
}

// Planned by the first function of a pair, run and deleted by the second.
struct aclOpExecutor {
  virtual ~aclOpExecutor() = default;
  virtual void run() = 0;
  sim::Kernel* kernel = nullptr;
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

int failed(const char* name, const std::exception& error);

// The second function of every pair.
int execute(void* workspace, uint64_t workspace_size, aclOpExecutor* planned, void* stream);

// Written once per list of parameters, not per operator: this is what compiling costs.
template <typename... Parameters>
struct Planned final : aclOpExecutor {
  using Body = void (*)(Parameters...);
  Planned(Body operator_body, typename Argument<Parameters>::Handle... handles)
      : body(operator_body), kept(Argument<Parameters>::keep(handles)...) {}
  void run() override {
    std::apply([this](const auto&... each) { body(Argument<Parameters>::open(each)...); }, kept);
  }
  Body body;
  std::tuple<typename Argument<Parameters>::Kept...> kept;
};

template <typename... Parameters>
int plan(Kernel& kernel, void (*body)(Parameters...), uint64_t* workspace_size,
         aclOpExecutor** executor, typename Argument<Parameters>::Handle... handles) try {
  *workspace_size = 0;
  *executor = new Planned<Parameters...>(body, handles...);
  (*executor)->kernel = &kernel;
  return 0;
} catch (const std::exception& error) {
  return failed(kernel.name, error);
}

// The first function of a pair, with the C signature that the parameters imply.
template <auto body, Kernel& kernel>
struct First;

template <typename... Parameters, void (*body)(Parameters...), Kernel& kernel>
struct First<body, kernel> {
  static int function(typename Argument<Parameters>::Handle... handles, uint64_t* workspace_size,
                      aclOpExecutor** executor) {
    return plan<Parameters...>(kernel, body, workspace_size, executor, handles...);
  }
};

using Symbol = int (*)();

template <typename Function>
Symbol as_symbol(Function* function) {
  // By way of void*: the compiler is right that the types differ, the caller knows them.
  return reinterpret_cast<Symbol>(reinterpret_cast<void*>(function));
}

}  // namespace sim

// The exported names are indirect functions: what a lookup finds is decided when it asks, which
// is how a hidden operator is not found.
#define OPERATOR(Name, ...)                                                                \
  static void Name##Body(__VA_ARGS__);                                                     \
  static sim::Kernel Name##Kernel("aclnn" #Name);                                          \
  extern "C" __attribute__((used)) sim::Symbol Name##FindFirst() {                         \
    if (sim::is_hidden("aclnn" #Name)) return nullptr;                                     \
    return sim::as_symbol(&sim::First<&Name##Body, Name##Kernel>::function);               \
  }                                                                                        \
  extern "C" __attribute__((used)) sim::Symbol Name##FindSecond() {                        \
    return sim::is_hidden("aclnn" #Name) ? nullptr : sim::as_symbol(&sim::execute);        \
  }                                                                                        \
  SIM_EXPORT int aclnn##Name##GetWorkspaceSize() __attribute__((ifunc(#Name "FindFirst"))); \
  SIM_EXPORT int aclnn##Name() __attribute__((ifunc(#Name "FindSecond")));                 \
  static void Name##Body(__VA_ARGS__)

using sim::DType;
using sim::Ints;
using sim::OptionalInts;
using sim::OptionalScalar;
using sim::Out;
using sim::Outs;
using sim::Scalar;
using sim::Scalars;
using sim::Tensor;
using sim::Tensors;
