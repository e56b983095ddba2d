#include "call_site.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <memory>
#include <mutex>
#include <new>

#include "patient_condition.h"

namespace nfe {
namespace {

struct Shared {
  std::mutex mutex;
  PatientCondition changed;
  nfe_sight_callback callback = nullptr;
  unsigned open = 0;  // questions that Python may still be answering
};

Shared& shared() {
  // Never destroyed: threads may ask while static objects are torn down.
  static Shared* const state = new Shared;
  return *state;
}

// Python answers in Python code, which may itself run operators.
thread_local bool is_answering = false;

// One question. Owned by both threads: who is slower may find the other one gone.
struct Question {
  nfe_sight sight{};
  std::string op;
  std::string arguments;
  std::array<char, 512> site{};
  nfe_sight_callback callback = nullptr;
  std::int32_t caller_waits = 1;  // accessed atomically; Python reads it through ctypes
  bool answered = false;
  std::int32_t answer = 0;
};

std::int32_t run_callback(Question& question) {
  is_answering = true;
  const std::int32_t answer = question.callback(&question.sight);
  is_answering = false;
  return answer;
}

void close_question() noexcept {
  --shared().open;
  shared().changed.notify_all();
}

// A C function that is left by pthread_exit() when Python ends meanwhile: it holds no lock then,
// and what it owns is leaked.
extern "C" void* answer_in_own_thread(void* raw) {
  auto* const owned = static_cast<std::shared_ptr<Question>*>(raw);
  const std::int32_t answer = run_callback(**owned);
  {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    (*owned)->answer = answer;
    (*owned)->answered = true;
    close_question();
  }
  delete owned;
  return nullptr;
}

bool start_thread(const std::shared_ptr<Question>& question) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto* const owned = new std::shared_ptr<Question>(question);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, &answer_in_own_thread, owned);
  pthread_attr_destroy(&attributes);
  if (failed != 0) delete owned;
  return failed == 0;
}

// Python's functions by name: the hook also loads into processes that have no Python.
template <typename Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Neither function needs the GIL.
bool this_thread_holds_gil() {
  using State = void* (*)();
  static const State of_this_thread = python<State>("PyGILState_GetThisThreadState");
  static const State current = python<State>("PyThreadState_GetUnchecked") != nullptr
                                   ? python<State>("PyThreadState_GetUnchecked")
                                   : python<State>("_PyThreadState_UncheckedGet");  // before 3.13
  if (of_this_thread == nullptr || current == nullptr) return false;
  void* const mine = of_this_thread();
  return mine != nullptr && mine == current();
}

CallSites::Answer meaning(std::int32_t answer) {
  return answer > 0   ? CallSites::Answer::kNew
         : answer < 0 ? CallSites::Answer::kNone
                      : CallSites::Answer::kKnown;
}

}  // namespace

CallSites& CallSites::instance() {
  static CallSites* const instance = new CallSites;
  return *instance;
}

CallSites::CallSites() {
  shared();
  pthread_atfork(nullptr, nullptr, &CallSites::in_forked_child);
}

void CallSites::in_forked_child() noexcept {
  Shared& state = shared();
  new (&state.mutex) std::mutex;
  new (&state.changed) PatientCondition;
  state.open = 0;
  is_answering = false;
}

void CallSites::set_callback(nfe_sight_callback callback) noexcept {
  std::unique_lock<std::mutex> lock(shared().mutex);
  shared().callback = callback;
  if (callback == nullptr) shared().changed.wait_for(lock, patience, [] { return shared().open == 0; });
}

CallSites::Answer CallSites::ask(nfe_sight sight, const std::string& op,
                                 const std::string& arguments, std::string& site) noexcept {
  if (is_answering) return Answer::kNone;
  try {
    const auto question = std::make_shared<Question>();
    question->sight = sight;
    question->op = op;
    question->arguments = arguments;
    question->sight.op = question->op.c_str();
    question->sight.arguments = question->arguments.c_str();
    question->sight.thread = static_cast<std::uint64_t>(pthread_self());
    question->sight.caller_waits = &question->caller_waits;
    question->sight.site = question->site.data();
    question->sight.site_bytes = question->site.size();

    std::unique_lock<std::mutex> lock(shared().mutex);
    question->callback = shared().callback;
    if (question->callback == nullptr) return Answer::kNone;
    ++shared().open;
    lock.unlock();
    if (this_thread_holds_gil()) {
      question->answer = run_callback(*question);
      lock.lock();
      close_question();
    } else {
      const bool started = start_thread(question);
      lock.lock();
      if (!started) {
        close_question();
        return Answer::kNone;
      }
      if (!shared().changed.wait_for(lock, patience, [&] { return question->answered; })) {
        __atomic_store_n(&question->caller_waits, 0, __ATOMIC_RELEASE);
        return Answer::kTooLate;
      }
    }
    site = question->site.data();
    return meaning(question->answer);
  } catch (...) {  // out of memory: the operator has run, and that is what counts
    return Answer::kNone;
  }
}

}  // namespace nfe
