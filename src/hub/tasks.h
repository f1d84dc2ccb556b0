#pragma once
// The names of tasks, and the one place that tells a checkpoint's task (spec: loader, task resolution).

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/config.h"

namespace mk {

// The canonical names, sorted.
std::span<const std::string_view> known_tasks();

// The canonical name of what a user or a config wrote: "masked-lm" is "fill-mask", "translation" is
// "text2text-generation". Case and "_" do not matter; "-with-past" stays. The modality stays, too:
// "image-feature-extraction" is no "feature-extraction". An unknown name comes back as it is.
std::string normalise_task(std::string_view task);

// usage for a task that is neither known nor a synonym, with the nearest known one.
Status check_task(std::string_view task);

enum class TaskSource { user_task, user_class, model_id_default, sentinel_default, architecture, wrapped_library };
// As reports write it: "user-task", "tasks-manager" (for the architecture) ...
std::string_view name_of(TaskSource source);

// What the command line or a build config says; empty texts say nothing.
struct TaskRequest {
  std::string task;
  std::string model_class;
  std::string model_id;    // of the Hub; a revision behind it does not count
  std::string first_task;  // that the registry has for the model type; taken where the config names no architecture
};

struct TaskChoice {
  std::string task;  // canonical, of the model's modality
  std::string name;  // what reports show: an explicit task as it was written, else the task
  TaskSource source = TaskSource::architecture;
};

// By request, by the model type's fixed task, by the class in architectures[0], in this order. usage where none of them
// tells, or for an unknown task.
Result<TaskChoice> choose_task(const ModelConfig& config, const TaskRequest& request);

// Whether the main input of a model type is pixel_values; its "feature-extraction" is "image-feature-extraction".
bool takes_images(std::string_view model_type);

// The task of a transformers class ("BertForMaskedLM"), on a model of this type; empty where the name does not tell.
std::string task_of_class(std::string_view class_name, std::string_view model_type);

}  // namespace mk
