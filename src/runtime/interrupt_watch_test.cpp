#include "runtime/interrupt_watch.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "base/system.h"
#include "testing/testing.h"

namespace mk {
namespace {

TEST(InterruptWatch, StopsOnceAfterASignalAndNeverWithoutOne) {
  std::atomic<int> stops = 0;
  {
    const InterruptWatch watch([&] { ++stops; });
  }
  EXPECT_EQ(stops, 0);

  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        catch_interrupts();
        std::atomic<int> calls = 0;
        {
          const InterruptWatch watch([&] { ++calls; });
          std::raise(SIGINT);
          for (int i = 0; i < 500 && calls == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          std::this_thread::sleep_for(std::chrono::milliseconds(60));
        }
        std::_Exit(calls == 1 ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace mk
