#pragma once
// Passes an interruption (base/system.h) on to a long call that cannot ask for it: while the watch lives, a thread of
// its own calls `stop` once, within a few hundredths of a second of the signal.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace mk {

class InterruptWatch {
 public:
  // `stop` must be safe to call from another thread while the watched call runs.
  explicit InterruptWatch(std::function<void()> stop);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace mk
