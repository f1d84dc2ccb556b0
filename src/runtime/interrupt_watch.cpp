#include "runtime/interrupt_watch.h"

#include <chrono>
#include <utility>

#include "base/system.h"

namespace mk {

InterruptWatch::InterruptWatch(std::function<void()> stop)
    : thread_([this, stop = std::move(stop)] {
        std::unique_lock lock(mutex_);
        while (!over_) {
          if (interrupted()) return stop();
          wake_.wait_for(lock, std::chrono::milliseconds(20));
        }
      }) {}

InterruptWatch::~InterruptWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace mk
