#include "base/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/system.h"
#include "testing/testing.h"

namespace mk {
namespace {

using std::chrono::milliseconds;
using testing::TemporaryFolder;

Result<ProcessOutcome> shell(const std::string& script, ProcessOptions options = {}) {
  options.arguments = {"-c", script};
  return run_process("sh", options);
}

TEST(Process, KeepsTheStreamsApart) {
  ASSERT_OK_AND(const ProcessOutcome outcome, shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_FALSE(outcome.timed_out);
}

TEST(Process, PassesArgumentsAsTheyAre) {
  ProcessOptions options;
  options.arguments = {"%s|", "a b", "", "\"$HOME\"", "*", "é"};
  ASSERT_OK_AND(const ProcessOutcome outcome, run_process("printf", options));
  EXPECT_EQ(outcome.out, "a b||\"$HOME\"|*|é|");
}

TEST(Process, DrainsMoreThanAPipeHolds) {
  ASSERT_OK_AND(const ProcessOutcome outcome,
                shell("head -c 3000000 /dev/zero >&2; head -c 2000000 /dev/zero; head -c 1000000 /dev/zero >&2"));
  EXPECT_EQ(outcome.out.size(), 2'000'000u);
  EXPECT_EQ(outcome.err.size(), 4'000'000u);
}

TEST(Process, FeedsItsInput) {
  ProcessOptions options;
  options.input = std::string(3'000'000, 'x');
  ASSERT_OK_AND(const ProcessOutcome echoed, run_process("cat", options));
  EXPECT_TRUE(echoed.out == options.input);
  // One that does not read it is no reason to die.
  ASSERT_OK_AND(const ProcessOutcome ignored, shell("exec 0<&-; sleep 0.05; echo done", options));
  EXPECT_EQ(ignored.out, "done\n");
  ASSERT_OK_AND(const ProcessOutcome none, run_process("cat", {}));
  EXPECT_EQ(none.out, "");
}

TEST(Process, SetsEnvironmentAndFolder) {
  const TemporaryFolder folder;
  ::setenv("MODELKIT_TEST_A", "ours", 1);
  ::setenv("MODELKIT_TEST_B", "ours", 1);
  ProcessOptions options;
  options.environment = {{"MODELKIT_TEST_B", "theirs"}, {"MODELKIT_TEST_C", "a=b"}};
  options.working_folder = folder.path();
  ASSERT_OK_AND(const ProcessOutcome outcome,
                shell("echo $MODELKIT_TEST_A $MODELKIT_TEST_B $MODELKIT_TEST_C; pwd", options));
  EXPECT_EQ(outcome.out, "ours theirs a=b\n" + to_utf8(std::filesystem::canonical(folder.path())) + "\n");
  EXPECT_EQ(environment("MODELKIT_TEST_B"), "ours");
}

TEST(Process, TellsWhatCannotStart) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_process("no-such-program-anywhere", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(run_process(folder / "none", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(run_process(folder.path(), {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(run_process("", {}).error().code, ErrorCode::not_found);
  ProcessOptions options;
  options.working_folder = folder / "none";
  EXPECT_EQ(run_process("true", options).error().message, "no such folder to run in");
}

TEST(Process, KillsWhatTakesTooLong) {
  ProcessOptions options;
  options.timeout = milliseconds(100);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND(const ProcessOutcome outcome, shell("echo early; exec sleep 30", options));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  EXPECT_EQ(outcome.out, "early\n");
  // One that never stops writing, one that closed its streams, and one whose child holds them.
  ASSERT_OK_AND(const ProcessOutcome endless, shell("exec yes", options));
  EXPECT_TRUE(endless.timed_out);
  ASSERT_OK_AND(const ProcessOutcome closed, shell("exec >&- 2>&-; exec sleep 30", options));
  EXPECT_TRUE(closed.timed_out);
  ASSERT_OK_AND(const ProcessOutcome parent, shell("sleep 2 & echo started; exit 5"));
  EXPECT_EQ(parent.exit_code, 5);
  EXPECT_EQ(parent.out, "started\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Process, ReportsSignals) {
  ASSERT_OK_AND(const ProcessOutcome outcome, shell("kill -SEGV $$"));
  EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
}

}  // namespace
}  // namespace mk
