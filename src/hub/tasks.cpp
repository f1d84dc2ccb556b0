#include "hub/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/spelling.h"
#include "base/text.h"

namespace mk {
namespace {

constexpr std::array<std::string_view, 40> tasks{
    "any-to-any",
    "audio-classification",
    "audio-frame-classification",
    "audio-xvector",
    "automatic-speech-recognition",
    "depth-estimation",
    "document-question-answering",
    "feature-extraction",
    "fill-mask",
    "image-classification",
    "image-feature-extraction",
    "image-segmentation",
    "image-text-to-text",
    "image-to-image",
    "image-to-text",
    "inpainting",
    "keypoint-detection",
    "keypoint-matching",
    "mask-generation",
    "masked-im",
    "multiple-choice",
    "next-sentence-prediction",
    "object-detection",
    "question-answering",
    "reinforcement-learning",
    "semantic-segmentation",
    "sentence-similarity",
    "table-question-answering",
    "text-classification",
    "text-generation",
    "text-to-audio",
    "text-to-image",
    "text2text-generation",
    "time-series-forecasting",
    "token-classification",
    "video-classification",
    "visual-question-answering",
    "zero-shot-audio-classification",
    "zero-shot-image-classification",
    "zero-shot-object-detection",
};
static_assert(std::is_sorted(tasks.begin(), tasks.end()));

struct Pair {
  std::string_view key;
  std::string_view value;
};

constexpr Pair synonyms[] = {
    {"causal-lm", "text-generation"},
    {"seq2seq-lm", "text2text-generation"},
    {"summarization", "text2text-generation"},
    {"translation", "text2text-generation"},
    {"masked-lm", "fill-mask"},
    {"sequence-classification", "text-classification"},
    {"zero-shot-classification", "text-classification"},
    {"sentence-similarity", "feature-extraction"},
    {"default", "feature-extraction"},
    {"pretraining", "feature-extraction"},
    {"audio-ctc", "automatic-speech-recognition"},
    {"speech2seq-lm", "automatic-speech-recognition"},
    {"vision2seq-lm", "image-to-text"},
};

constexpr Pair tasks_by_model_id[] = {{"prajjwal1/bert-tiny", "feature-extraction"}};
// Types whose class serves several tasks.
constexpr Pair tasks_by_model_type[] = {
    {"sam", "mask-generation"},
    {"sam2", "mask-generation"},
    {"sam2-video", "mask-generation"},
    {"vitpose", "keypoint-detection"},
};

constexpr std::string_view with_past = "-with-past";

std::string lower_with_dashes(std::string_view text) {
  std::string result = lower_case(text);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

const Pair* find(std::span<const Pair> table, std::string_view key) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Pair& row) { return row.key == key; });
  return found == table.end() ? nullptr : &*found;
}

bool is_known(std::string_view task) { return std::binary_search(tasks.begin(), tasks.end(), task); }

}  // namespace

std::span<const std::string_view> known_tasks() { return tasks; }

std::string normalise_task(std::string_view task) {
  const std::string whole = lower_with_dashes(task);
  const bool has_past = whole.ends_with(with_past);
  const std::string_view stem = std::string_view(whole).substr(0, whole.size() - (has_past ? with_past.size() : 0));
  const Pair* synonym = find(synonyms, stem);
  if (!synonym) return is_known(stem) ? whole : std::string(task);
  return std::string(synonym->value) + (has_past ? std::string(with_past) : std::string());
}

Status check_task(std::string_view task) {
  std::string name = normalise_task(task);
  if (name.ends_with(with_past)) name.resize(name.size() - with_past.size());
  if (is_known(name)) return {};
  std::vector<std::string_view> candidates(tasks.begin(), tasks.end());
  for (const Pair& synonym : synonyms) candidates.push_back(synonym.key);
  const auto near = nearest(lower_with_dashes(task), candidates);
  return fail(ErrorCode::usage, fmt::format("unknown task '{}'", task), "--task",
              near ? fmt::format("Did you mean {}?", *near)
                   : fmt::format("`winml inspect --list-tasks` lists the {} there are", tasks.size()));
}

std::string_view name_of(TaskSource source) {
  constexpr std::array<std::string_view, 6> names{"user-task",        "user-class",    "model-id-default",
                                                  "sentinel-default", "tasks-manager", "wrapped-library"};
  return names[static_cast<std::size_t>(source)];
}

Result<TaskChoice> choose_task(const ModelConfig& config, const TaskRequest& request) {
  const std::string model_type = config.model_type();
  const auto choice = [](const std::string& task, TaskSource source) { return TaskChoice{task, task, source}; };
  // Of an encoder and a decoder, a class that also fills masks generates.
  const auto task_of = [&](std::string_view class_name) -> Result<std::string> {
    std::string task = task_of_class(class_name, model_type);
    MK_TRY(const bool generates, config.boolean("is_encoder_decoder", false));
    return task == "fill-mask" && generates ? "text2text-generation" : task;
  };

  if (!request.task.empty()) {
    MK_CHECK(check_task(request.task));
    std::string task = normalise_task(request.task);
    if (task == "feature-extraction" && takes_images(model_type)) task = "image-feature-extraction";
    return TaskChoice{std::move(task), request.task,
                      request.model_class.empty() ? TaskSource::user_task : TaskSource::user_class};
  }
  if (!request.model_class.empty()) {
    MK_TRY(std::string task, task_of(request.model_class));
    if (!task.empty()) return choice(task, TaskSource::user_class);
    return fail(ErrorCode::usage, fmt::format("the class {} does not tell its task", request.model_class),
                "--model-class", "Give --task, too");
  }
  if (const Pair* row =
          find(tasks_by_model_id, std::string_view(request.model_id).substr(0, request.model_id.find('@'))))
    return choice(std::string(row->value), TaskSource::model_id_default);
  if (const Pair* row = find(tasks_by_model_type, lower_with_dashes(model_type)))
    return choice(std::string(row->value), TaskSource::sentinel_default);
  const auto architectures = config.architectures();
  if (architectures.empty()) {
    if (!request.first_task.empty()) return choice(request.first_task, TaskSource::wrapped_library);
    return fail(ErrorCode::usage, "cannot tell the task: the config names no architecture",
                config.name() + "#/architectures", "Give it with --task");
  }
  MK_TRY(std::string task, task_of(architectures.front()));
  if (!task.empty()) return choice(task, TaskSource::architecture);
  return fail(ErrorCode::usage, fmt::format("cannot tell the task of the class {}", architectures.front()),
              config.name() + "#/architectures/0", "Give it with --task");
}

}  // namespace mk
