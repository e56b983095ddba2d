// Streams and events only keep time: work is done when it is issued, so it is always complete.
#include <atomic>
#include <chrono>

#include "ledger.h"

namespace {

struct Stream {
  int32_t id;
};

struct Event {
  std::atomic<int64_t> nanoseconds{0};
};

std::atomic<int32_t> next_stream{1};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

aclError create(Stream** out) {
  *out = new Stream{next_stream++};
  return kOk;
}

aclError destroy(Stream* stream) {
  delete stream;
  return kOk;
}

}  // namespace

SIM_EXPORT aclError aclrtCreateStream(Stream** out) {
  SIM_ENTER();
  return create(out);
}

SIM_EXPORT aclError aclrtCreateStreamWithConfig(Stream** out, uint32_t, uint32_t) {
  SIM_ENTER();
  return create(out);
}

SIM_EXPORT aclError aclrtDestroyStream(Stream* stream) {
  SIM_COUNT();
  return destroy(stream);
}

SIM_EXPORT aclError aclrtDestroyStreamForce(Stream* stream) {
  SIM_COUNT();
  return destroy(stream);
}

SIM_EXPORT aclError aclrtStreamGetId(Stream* stream, int32_t* id) {
  SIM_ENTER();
  *id = stream == nullptr ? 0 : stream->id;
  return kOk;
}

SIM_EXPORT aclError aclrtStreamQuery(Stream*, int* status) {
  SIM_ENTER();
  *status = 0;  // complete; for an event's status below, complete is 1
  return kOk;
}

SIM_EXPORT aclError aclrtCreateEventWithFlag(Event** out, uint32_t) {
  SIM_ENTER();
  *out = new Event;
  return kOk;
}

SIM_EXPORT aclError aclrtCreateEventExWithFlag(Event** out, uint32_t) {
  SIM_ENTER();
  *out = new Event;
  return kOk;
}

SIM_EXPORT aclError aclrtDestroyEvent(Event* event) {
  SIM_COUNT();
  delete event;
  return kOk;
}

SIM_EXPORT aclError aclrtRecordEvent(Event* event, void*) {
  SIM_ENTER();
  event->nanoseconds = now();
  return kOk;
}

SIM_EXPORT aclError aclrtQueryEventStatus(Event*, int* status) {
  SIM_ENTER();
  *status = 1;
  return kOk;
}

SIM_EXPORT aclError aclrtQueryEventWaitStatus(Event*, int* status) {
  SIM_ENTER();
  *status = 0;
  return kOk;
}

SIM_EXPORT aclError aclrtEventElapsedTime(float* milliseconds, Event* start, Event* end) {
  SIM_ENTER();
  *milliseconds = static_cast<float>(end->nanoseconds - start->nanoseconds) / 1e6f;
  return kOk;
}

SIM_EXPORT aclError aclrtEventGetTimestamp(Event* event, uint64_t* microseconds) {
  SIM_ENTER();
  *microseconds = static_cast<uint64_t>(event->nanoseconds / 1000);
  return kOk;
}

SIM_EXPORT aclError aclrtLaunchHostFunc(void*, void (*function)(void*), void* argument) {
  SIM_ENTER();
  function(argument);
  return kOk;
}

SIM_EXPORT aclError aclrtLaunchCallback(void (*function)(void*), void* argument, int, void*) {
  SIM_ENTER();
  function(argument);
  return kOk;
}

#define WAITS_FOR_NOTHING(name)     \
  SIM_EXPORT aclError name() {      \
    SIM_ENTER();                    \
    return kOk;                     \
  }

WAITS_FOR_NOTHING(aclrtSynchronizeStream)
WAITS_FOR_NOTHING(aclrtSynchronizeStreamWithTimeout)
WAITS_FOR_NOTHING(aclrtSynchronizeDevice)
WAITS_FOR_NOTHING(aclrtSynchronizeDeviceWithTimeout)
WAITS_FOR_NOTHING(aclrtSynchronizeEvent)
WAITS_FOR_NOTHING(aclrtStreamWaitEvent)
WAITS_FOR_NOTHING(aclrtResetEvent)
WAITS_FOR_NOTHING(aclrtProcessReport)
WAITS_FOR_NOTHING(aclrtSubscribeReport)
WAITS_FOR_NOTHING(aclrtUnSubscribeReport)
