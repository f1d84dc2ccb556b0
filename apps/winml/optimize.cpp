// winml optimize: a smaller graph that gives the same numbers.

#include "optimize/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/json.h"
#include "build/numeric_check.h"
#include "build/pass_policy.h"
#include "graph/model_acceptance.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "hub/resolve.h"
#include "optimize/passes.h"
#include "winml/capability_file.h"
#include "winml/command.h"
#include "winml/shared_options.h"
#include "winml/target_options.h"

namespace mk::cli {
namespace {

struct Switch {
  std::string_view capability;
  bool enable = false;
  bool disable = false;
};

struct OptimizeCommandOptions {
  std::optional<std::string> model;
  std::optional<Path> output;
  bool overwrite = false;
  std::optional<Path> config;
  std::optional<std::string> device;
  std::optional<std::string> ep;
  bool list_capabilities = false;
  bool check_optim = false;
  bool verify = true;
  double tolerance = NumericCheckOptions{}.tolerance;
  std::optional<Path> ort;
  std::vector<Switch> switches;  // one per capability
};

void describe(OptimizeCommandOptions& o, OptionTable& options) {
  model_option(options, o.model, "An ONNX file, or a folder that build made");
  output_option(options, o.output, "The file to write").preset("STEM_opt.onnx beside the model");
  overwrite_option(options, o.overwrite);
  config_option(options, o.config, "YAML or JSON: capabilities and whether they are on");
  ep_option(options, o.ep);
  device_option(options, o.device);
  options.flag("-l, --list-capabilities", o.list_capabilities, "List what can be switched, and exit");
  options.flag("--check-optim", o.check_optim, "Say what each capability would do; write nothing");
  options.toggle("--verify", o.verify, "Compare the result's numbers with the model's on random inputs").preset("on");
  options.value("--tolerance", "X", o.tolerance, "Largest difference, relative to an output's magnitude");
  ort_option(options, o.ort);
  for (const Capability& capability : all_capabilities()) o.switches.push_back({capability.name});
  const std::vector<Capability> list = all_capabilities();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name(list[i].name);
    options.flag("--enable-" + name, o.switches[i].enable, list[i].summary).hidden();
    options.flag("--disable-" + name, o.switches[i].disable, "Not that").hidden();
  }
}

struct Finding {
  std::string_view capability;
  std::size_t places = 0;
  std::size_t nodes_after = 0;
};

struct OptimizeCommandReport {
  bool listing = false;
  std::optional<std::vector<Finding>> findings;  // of --check-optim
  Path model;
  std::vector<Path> files;
  std::string reason;  // for the set of passes
  OptimizeReport optimized;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  double tolerance = 0;
  double optimize_seconds = 0, verify_seconds = 0, seconds = 0;
};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What to run: as the switches and the config say, or, where nothing is said, what suits the target.
struct Selection {
  CapabilitySet passes;
  bool standard_only = false;
  std::string reason;
};

Result<Selection> selected(const OptimizeCommandOptions& o, Context& context) {
  MK_TRY(const TargetRequest target, parse_target(o.ep.value_or(""), o.device.value_or("")));
  const bool said = o.config || std::any_of(o.switches.begin(), o.switches.end(),
                                            [](const Switch& s) { return s.enable || s.disable; });
  const PassPolicy policy = pass_policy(target, AfterOptimize::nothing);
  Selection selection{policy.passes, policy.standard_only, std::string(policy.reason)};
  if (said) selection = {CapabilitySet::defaults(), false, "as the options and the config say"};
  if (o.config) {
    MK_TRY(const auto values, read_capability_file(*o.config));
    MK_TRY(const auto left_out, selection.passes.set_all(values));
    for (const std::string& sentence : left_out) context.progress.warn(sentence);
  }
  for (const Switch& s : o.switches) {
    if (s.enable && s.disable) {
      return fail(ErrorCode::usage, fmt::format("--enable-{0} and --disable-{0} contradict each other", s.capability));
    }
    if (s.enable || s.disable) MK_CHECK(selection.passes.set(s.capability, s.enable));
  }
  for (const std::string& name : selection.passes.close()) {
    const auto off = std::find_if(o.switches.begin(), o.switches.end(),
                                  [&](const Switch& s) { return s.capability == name && s.disable; });
    if (off != o.switches.end()) {
      context.progress.warn("--disable-" + name + " has no effect: what is enabled depends on it");
    }
  }
  return selection;
}

Result<std::vector<Finding>> probe(const Model& model, const Selection& selection) {
  std::vector<Finding> findings;
  for (const Capability& capability : all_capabilities()) {
    std::unique_ptr<Model> copy = clone(model);
    OptimizeOptions options{.capabilities = CapabilitySet::defaults(), .standard_only = selection.standard_only};
    MK_CHECK(options.capabilities.set(capability.name, true));
    options.capabilities.close();
    MK_TRY(const OptimizeReport report, optimize(copy, options));
    Finding& finding = findings.emplace_back(Finding{capability.name, 0, report.nodes_after});
    for (const PassRecord& row : report.passes) {
      if (pass_named(row.pass)->capability() == capability.name) finding.places += row.fired;
    }
  }
  return findings;
}

std::uint64_t bytes_of(const std::vector<Path>& files) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const Path& file : files) bytes += std::filesystem::file_size(file, ignored);
  return bytes;
}

void say(const OptimizeReport& report, Context& context) {
  for (const std::string& note : report.notes) context.progress.info("shapes: " + note);
  for (const NearMiss& miss : report.near_misses) {
    const std::string place = miss.node.empty() ? std::string() : " at " + miss.node;
    context.progress.info(fmt::format("{} did not fire{}: {}", miss.pass, place, miss.reason));
  }
  for (const RolledBack& taken : report.rolled_back) {
    context.progress.warn(fmt::format("{} was taken back: {}", taken.pass, taken.reason));
  }
  if (!report.numbers.not_compared.empty()) {
    context.progress.warn("the numbers were not compared: " + report.numbers.not_compared);
  }
}

bool has_all_data(const Model& model) {
  return std::ranges::none_of(model.graph->initializers(), [](const Value* value) {
    const Tensor& tensor = *value->initializer();
    return !tensor.data && !tensor.external.empty();
  });
}

// References to data files are relative to the model: where the data is missing they must stay right.
Status same_folder(const Path& model, const Path& output) {
  std::error_code ignored;
  const Path from = std::filesystem::weakly_canonical(std::filesystem::absolute(model, ignored), ignored);
  const Path to = std::filesystem::weakly_canonical(std::filesystem::absolute(output, ignored), ignored);
  if (from.parent_path() == to.parent_path()) return {};
  return fail(ErrorCode::not_found, "data of the model is missing, so its references only hold in the model's folder",
              to_utf8(output), "Write beside the model, or put its data files in place");
}

Result<OptimizeCommandReport> run(const OptimizeCommandOptions& o, Context& context) {
  OptimizeCommandReport report{.listing = o.list_capabilities};
  if (o.list_capabilities) return report;
  if (!o.model) return fail(ErrorCode::usage, "no model to optimize", {}, "Give -m MODEL");
  if (!(o.tolerance >= 0)) return fail(ErrorCode::usage, "--tolerance must be a number from 0 on");
  const auto start = Clock::now();
  MK_TRY(const Selection selection, selected(o, context));
  MK_TRY(const ResolvedModel source, resolve_model(*o.model, WantedModel::onnx, context.hub));
  report.model = source.onnx;
  report.reason = selection.reason;
  report.tolerance = o.tolerance;
  const Path output =
      o.output.value_or(source.output_folder() / path_from_utf8(to_utf8(source.onnx.stem()) + "_opt.onnx"));
  if (!o.check_optim) MK_CHECK(guard_overwrite(output, o.overwrite));

  // Data that is not there is no obstacle, data that is cut off is.
  auto read = read_onnx(source.onnx, {.progress = &context.progress});
  if (!read && read.error().code == ErrorCode::not_found)
    read = read_onnx(source.onnx, {.progress = &context.progress, .require_external_data = false});
  MK_TRY(std::unique_ptr<Model> model, std::move(read));
  const bool complete = has_all_data(*model);
  if (!o.check_optim) {
    if (!complete) MK_CHECK(same_folder(source.onnx, output));
    MK_CHECK(keep_inputs(output, source.onnx, model->external_locations,
                         o.config ? std::vector<Path>{*o.config} : std::vector<Path>{}));
  }
  MK_CHECK(accept_model(*model, context.progress));
  if (o.check_optim) {
    MK_TRY(report.findings, probe(*model, selection));
    return report;
  }
  OptimizeOptions options{
      .capabilities = selection.passes, .standard_only = selection.standard_only, .explain = context.verbosity > 0};
  if (o.verify && !complete) {
    context.progress.warn("the numbers were not compared: data of the model is missing");
  } else if (o.verify) {
    options.check = [&report, check = numeric_check({.ort = o.ort, .tolerance = o.tolerance}, context.progress)](
                        const Model& before, const Model& after) {
      const auto checking = Clock::now();
      auto verdict = check(before, after);
      report.verify_seconds += since(checking);
      return verdict;
    };
  }
  auto line = context.progress.stage("optimize");
  const auto optimizing = Clock::now();
  MK_TRY(report.optimized, optimize(model, options));
  report.optimize_seconds = since(optimizing) - report.verify_seconds;
  line->done(fmt::format("{} -> {} nodes", report.optimized.nodes_before, report.optimized.nodes_after));
  say(report.optimized, context);

  Publication publication;
  MK_TRY(const WrittenModel written, write_onnx(*model, output, publication, o.overwrite));
  MK_CHECK(publication.commit());
  report.files = written.files;
  report.bytes_after = written.bytes;
  report.bytes_before = bytes_of({source.onnx});
  report.seconds = since(start);
  return report;
}

std::string listing() {
  std::map<std::string_view, std::vector<Capability>> groups;
  const std::vector<Capability> list = all_capabilities();
  for (const Capability& capability : list) groups[capability.category].push_back(capability);
  std::string text = fmt::format("Available optimization flags ({} total):\n", list.size());
  for (auto& [category, members] : groups) {
    text += fmt::format("\n{}:\n", category);
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::vector<std::vector<std::string>> rows;
    for (const Capability& c : members) {
      std::string about(c.summary);
      if (!c.depends.empty()) about += fmt::format(" (with {})", c.depends);
      rows.push_back({fmt::format("--{}-{}", c.by_default ? "disable" : "enable", c.name), about});
    }
    text += columns(rows);
  }
  return text;
}

std::string change_text(std::size_t before, std::size_t after) {
  if (before == after || before == 0) return fmt::format("Nodes: {} -> {} (no change)", before, after);
  const double share = 100.0 * (static_cast<double>(before) - static_cast<double>(after)) / static_cast<double>(before);
  return fmt::format("Nodes: {} -> {} ({:.1f}% {})", before, after, std::abs(share),
                     share > 0 ? "reduction" : "increase");
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows;
  for (const Finding& finding : findings) {
    if (finding.places == 0) continue;
    rows.push_back({"--enable-" + std::string(finding.capability),
                    fmt::format("{} places, {} nodes after", finding.places, finding.nodes_after)});
  }
  return rows.empty() ? "No capability would change this model.\n" : columns(rows);
}

std::string text(const OptimizeCommandReport& r, const Context&) {
  if (r.listing) return listing();
  if (r.findings) return findings_text(*r.findings);
  std::vector<std::vector<std::string>> rows;
  for (const PassRecord& row : r.optimized.passes) rows.push_back({std::string(row.pass), std::to_string(row.fired)});
  std::string checked;
  if (r.verify_seconds > 0 && r.optimized.numbers.not_compared.empty()) {
    checked = fmt::format("Numbers: max_abs_diff {:.2g}, {:.2g} of the largest value (tolerance {:.2g})\n",
                          r.optimized.numbers.max_abs_diff, r.optimized.numbers.max_rel_diff, r.tolerance);
  }
  return fmt::format("Success! Model optimized: {}\n{}\nPasses: {}\n{}{}", to_utf8(r.files.front()),
                     change_text(r.optimized.nodes_before, r.optimized.nodes_after), r.reason, columns(rows), checked);
}

Json json(const OptimizeCommandReport& r) {
  if (r.listing) {
    Json list = Json::array();
    for (const Capability& c : all_capabilities()) {
      list.push_back({{"name", c.name},
                      {"category", c.category},
                      {"summary", c.summary},
                      {"default", c.by_default},
                      {"depends", c.depends.empty() ? Json(nullptr) : Json(c.depends)}});
    }
    return {{"capabilities", std::move(list)}};
  }
  if (r.findings) {
    Json list = Json::array();
    for (const Finding& f : *r.findings) {
      list.push_back({{"capability", f.capability}, {"places", f.places}, {"nodes_after", f.nodes_after}});
    }
    return {{"model", to_utf8(r.model)}, {"findings", std::move(list)}};
  }
  Json passes = Json::array(), rolled_back = Json::array(), files = Json::array();
  for (const PassRecord& row : r.optimized.passes) {
    passes.push_back({{"pass", row.pass}, {"fired", row.fired}, {"seconds", row.seconds}});
  }
  for (const RolledBack& taken : r.optimized.rolled_back) {
    rolled_back.push_back({{"pass", taken.pass}, {"reason", taken.reason}});
  }
  for (const Path& file : r.files) files.push_back(to_utf8(file));
  const NumericVerdict& numbers = r.optimized.numbers;
  const bool compared = r.verify_seconds > 0 && numbers.not_compared.empty();
  return {{"model", to_utf8(r.model)},
          {"files", std::move(files)},
          {"nodes_before", r.optimized.nodes_before},
          {"nodes_after", r.optimized.nodes_after},
          {"bytes_after", r.bytes_after},
          {"policy", r.reason},
          {"passes", std::move(passes)},
          {"rolled_back", std::move(rolled_back)},
          {"max_abs_diff", compared ? Json(numbers.max_abs_diff) : Json(nullptr)},
          {"max_rel_diff", compared ? Json(numbers.max_rel_diff) : Json(nullptr)},
          {"tolerance", compared ? Json(r.tolerance) : Json(nullptr)},
          {"not_compared", numbers.not_compared.empty() ? Json(nullptr) : Json(numbers.not_compared)},
          {"optimize_seconds", r.optimize_seconds},
          {"verify_seconds", r.verify_seconds},
          {"seconds", r.seconds}};
}

}  // namespace

Command optimize_command() {
  return define<OptimizeCommandOptions, OptimizeCommandReport>({
      .name = "optimize",
      .group = "Build",
      .summary = "Fuse and simplify an ONNX graph, and check that its numbers stay",
      .details =
          "Without switches the passes are those that suit the target (the CPU unless --ep or -d says otherwise). "
          "--enable-NAME and --disable-NAME, or a config, choose from the defaults instead; -l lists the names. "
          "The result is compared with the model on random inputs; a pass that changes the numbers is taken back "
          "and named. -v says why a pass that nearly matched did not fire.",
      .examples = {{"winml optimize -m model.onnx", "Writes model_opt.onnx"},
                   {"winml optimize -m model.onnx --enable-gelu-fusion -o out.onnx",
                    "One fusion, and constant folding"},
                   {"winml optimize -m model.onnx -v", "With the reasons"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = text,
      .json = json,
      .shows = [](const OptimizeCommandReport& r) { return r.listing || r.findings.has_value(); },
  });
}

}  // namespace mk::cli
