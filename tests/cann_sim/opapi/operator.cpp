// Running operators: isolated from the modes of the thread they happen to run on.
#include "operator.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <sstream>

// Both are in libascendcl.so.
extern "C" bool cann_sim_kernel_starts();
extern "C" void cann_sim_fail(const char* what);
extern "C" void cann_sim_spend_kernel();

namespace {

constexpr int kFailed = 561000;
constexpr int kNoContext = 107002;

std::atomic<sim::Kernel*> all_kernels{nullptr};

// torch carries its own OpenMP, which this library does not link with.
using SetThreads = void (*)(int);
using MaxThreads = int (*)();

class OneThread {
 public:
  OneThread() : before_(max_threads()()) { set_threads()(1); }
  ~OneThread() { set_threads()(before_); }

 private:
  static void* find(const char* name) {
    static void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(torch, name);
  }
  static SetThreads set_threads() {
    static const auto function = reinterpret_cast<SetThreads>(find("omp_set_num_threads"));
    return function;
  }
  static MaxThreads max_threads() {
    static const auto function = reinterpret_cast<MaxThreads>(find("omp_get_max_threads"));
    return function;
  }
  int before_;
};

// A device's kernel knows nothing of autograd, autocast, dispatch modes or profilers.
c10::impl::LocalDispatchKeySet device_keys() {
  c10::impl::LocalDispatchKeySet keys(c10::impl::PODLocalDispatchKeySet{});
  keys.included_ = c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
  keys.excluded_ = c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                   c10::autocast_dispatch_keyset |
                   c10::DispatchKeySet({c10::DispatchKey::Python,
                                        c10::DispatchKey::PythonDispatcher,
                                        c10::DispatchKey::PythonTLSSnapshot,
                                        c10::DispatchKey::FuncTorchBatched,
                                        c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                        c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                        c10::DispatchKey::FuncTorchVmapMode,
                                        c10::DispatchKey::Functionalize});
  return keys;
}

int run(sim::Kernel& kernel, aclOpExecutor& planned) try {
  c10::impl::ForceDispatchKeyGuard keys(device_keys());
  at::DisableRecordFunctionGuard no_profilers;
  OneThread one_thread;
  planned.run();
  cann_sim_spend_kernel();
  return 0;
} catch (const std::exception& error) {
  return sim::failed(kernel.name, error);
}

}  // namespace

namespace sim {

Kernel::Kernel(const char* aclnn_name) : name(aclnn_name), next(all_kernels.load()) {
  all_kernels = this;  // constructed one after the other, while the library loads
}

bool is_hidden(const char* aclnn_name) {
  static const std::set<std::string> hidden = [] {
    std::set<std::string> names;
    const char* list = std::getenv("CANN_SIM_HIDE");
    std::istringstream stream(list == nullptr ? "" : list);
    for (std::string name; std::getline(stream, name, ',');) names.insert(name);
    return names;
  }();
  return hidden.count(aclnn_name) != 0;
}

int failed(const char* name, const std::exception& error) {
  const auto* with_backtrace = dynamic_cast<const c10::Error*>(&error);
  const char* what = with_backtrace ? with_backtrace->what_without_backtrace() : error.what();
  cann_sim_fail((std::string(name) + ": " + what).c_str());
  return kFailed;
}

int execute(void*, uint64_t, aclOpExecutor* planned, void*) {
  std::unique_ptr<aclOpExecutor> owned(planned);
  if (!cann_sim_kernel_starts()) return kNoContext;
  Kernel& kernel = *planned->kernel;
  kernel.runs.fetch_add(1, std::memory_order_relaxed);
  return run(kernel, *planned);
}

}  // namespace sim

SIM_EXPORT const void* cann_sim_first_kernel() { return all_kernels.load(); }
SIM_EXPORT const void* cann_sim_next_kernel(const sim::Kernel* at) { return at->next; }
SIM_EXPORT const char* cann_sim_kernel_name(const sim::Kernel* at) { return at->name; }
SIM_EXPORT uint64_t cann_sim_kernel_calls(const sim::Kernel* at) { return at->runs.load(); }

// op-plugin calls these two around the first operator; the names are not checked for a pair.
SIM_EXPORT int aclnnInit(const char*) { return 0; }
SIM_EXPORT int aclnnFinalize() { return 0; }
