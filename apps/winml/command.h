#pragma once
// What a sub-command is: options in, one report out, rendered as text or as JSON. README.md beside this file says how
// to add one.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "winml/options.h"
#include "winml/style.h"

namespace mk {
class Hub;
}

namespace mk::cli {

// What a command may ask of its surroundings.
struct Context {
  Progress& progress;           // stderr
  Hub& hub;                     // for resolve_model(): one for the run, so that nothing is asked twice
  int verbosity = 0;            // -1 quiet, 0, 1 (-v), 2 (-vv)
  std::string format = "text";  // --format
  Style style;                  // of stdout
  bool json() const { return format == "json"; }
};

struct Example {
  std::string_view command;
  std::string_view about;
};

// What is printed, and how the process ends: 0, or 1 where the report is the answer no.
struct Output {
  std::string text;
  bool yes = true;
  bool is_answer = true;  // what the user asked to see; what only says what was done is not printed when quiet
};

// One run of a command: its options, the rows bound to them, and what to do once they are set.
struct Invocation {
  std::shared_ptr<void> options;
  OptionTable table;
  std::function<Result<Output>(Context&)> run;
};

struct Command {
  std::string_view name;
  std::string_view group;    // heading in the root help
  std::string_view summary;  // one line, no full stop
  std::string_view details;  // paragraphs for its own help; may be empty
  std::vector<Example> examples;
  std::vector<std::string_view> formats;  // of --format, the default first; empty where there is no such option
  bool hidden = false;
  std::function<Invocation()> prepare;
};

// The typed definition of a command. Leave `json` null where there is no --format json, and `answer` where the report
// is no verdict (an answer of no is exit 1). `shows` is of commands that make files: whether the text of a report is
// what was asked for all the same (a listing), so that -q prints it too.
template <typename Options, typename Report>
struct Definition {
  std::string_view name;
  std::string_view group;
  std::string_view summary;
  std::string_view details;
  std::vector<Example> examples;
  std::vector<std::string_view> formats;
  bool hidden = false;
  void (*options)(Options&, OptionTable&) = nullptr;
  Result<Report> (*run)(const Options&, Context&) = nullptr;
  std::string (*text)(const Report&, const Context&) = nullptr;
  Json (*json)(const Report&) = nullptr;
  bool (*answer)(const Report&) = nullptr;
  bool (*shows)(const Report&) = nullptr;
};

std::string json_text(const Json& json);  // indented, with a final newline

// Needs base/json.h where it is used.
template <typename Options, typename Report>
Command define(Definition<Options, Report> d) {
  const auto prepare = [describe = d.options, run = d.run, text = d.text, json = d.json, answer = d.answer,
                        shows = d.shows] {
    auto options = std::make_shared<Options>();
    Invocation invocation{.options = options, .table = {}, .run = {}};
    describe(*options, invocation.table);
    invocation.run = [=](Context& context) -> Result<Output> {
      MK_TRY(const Report report, run(*options, context));
      const bool as_json = json != nullptr && context.json();
      return Output{.text = as_json ? json_text(json(report)) : text(report, context),
                    .yes = answer == nullptr || answer(report),
                    .is_answer = as_json || shows == nullptr || shows(report)};
    };
    return invocation;
  };
  return {d.name, d.group, d.summary, d.details, std::move(d.examples), std::move(d.formats), d.hidden, prepare};
}

}  // namespace mk::cli
