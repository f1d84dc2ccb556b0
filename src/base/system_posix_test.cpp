#include "base/system.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <regex>
#include <thread>
#include <vector>

#include "testing/testing.h"

namespace mk {
namespace {

TEST(System, ReadsFlagsOfTheEnvironment) {
  for (const char* yes : {"1", "true", "YES", " on\n"}) {
    ::setenv("MODELKIT_TEST_FLAG", yes, 1);
    EXPECT_TRUE(environment_flag("MODELKIT_TEST_FLAG")) << yes;
  }
  for (const char* no : {"", "0", "false", "no", "off", "2"}) {
    ::setenv("MODELKIT_TEST_FLAG", no, 1);
    EXPECT_FALSE(environment_flag("MODELKIT_TEST_FLAG")) << no;
  }
  ::setenv("MODELKIT_TEST_FLAG", "", 1);
  EXPECT_EQ(environment("MODELKIT_TEST_FLAG"), std::nullopt);
  ::unsetenv("MODELKIT_TEST_FLAG");
  EXPECT_EQ(environment("MODELKIT_TEST_FLAG"), std::nullopt);
}

TEST(System, KnowsItself) {
  EXPECT_EQ(executable_path().filename(), "base_test");
  const MachineInfo info = machine_info();
  EXPECT_FALSE(info.system.empty());
  EXPECT_FALSE(info.machine.empty());
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.memory_bytes.value_or(1 << 30), 64u << 20);
}

TEST(System, MeasuresMemory) {
  const auto before = resident_bytes();
  ASSERT_TRUE(before);
  constexpr std::size_t bytes = 64 << 20;
  {
    std::vector<char> block(bytes, 1);
    EXPECT_GT(resident_bytes().value() + (1 << 20), *before + bytes - block[5]);
  }
  EXPECT_GE(peak_resident_bytes().value(), *before + bytes - (1 << 20));
}

TEST(System, FormatsTimes) {
  EXPECT_TRUE(std::regex_match(utc_timestamp(), std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)")));
  EXPECT_TRUE(std::regex_match(local_timestamp(), std::regex(R"(20\d{6}-\d{6})")));
}

TEST(Interrupts, SignalsThatEndAProcessSetTheFlag) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          catch_interrupts();
          if (interrupted()) ::_exit(1);
          ::raise(signal);
          ::_exit(interrupted() ? 7 : 1);
        },
        ::testing::ExitedWithCode(7), "")
        << signal;
  }
  EXPECT_EXIT(
      {
        catch_interrupts();
        ::raise(SIGTERM);
        ::raise(SIGTERM);  // of the same request
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        ::raise(SIGTERM);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(Interrupts, AHangupThatIsIgnoredStaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGHUP, SIG_IGN);
        catch_interrupts();
        ::raise(SIGHUP);
        ::_exit(interrupted() ? 1 : 7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(SharedLibrary, LoadsSymbols) {
  EXPECT_EQ(SharedLibrary::load("/none/libnone.so").error().code, ErrorCode::not_found);
  const testing::TemporaryFolder folder;
  EXPECT_EQ(SharedLibrary::load(folder.write("libbroken.so", "text")).error().code, ErrorCode::failed);
  ASSERT_OK_AND(const SharedLibrary library, SharedLibrary::load("libm.so.6"));
  EXPECT_NE(library.symbol("cos"), nullptr);
  EXPECT_EQ(library.symbol("no_such_function"), nullptr);
}

}  // namespace
}  // namespace mk
