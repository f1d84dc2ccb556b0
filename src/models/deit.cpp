// DeiT (Touvron et al. 2020): ViT with a distillation token, and optionally a second classifier on it.

#include "models/families.h"
#include "models/vit.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct DeiTConfig : ViTConfig {
  static DeiTConfig read(const Family& family, ConfigReader& fields) {
    DeiTConfig c{ViTConfig::read(family, fields)};
    c.distillation_token = true;
    return c;
  }
};

// The mean of the two classifiers.
Outputs with_teacher(const Scope& root, const DeiTConfig& c, const ImageInputs& in) {
  const Value x = vit_model(vit_base(root, c), c, in);
  const Value of_class = vit_classifier(root["cls_classifier"], take(root, x, 1, 0), c.num_labels);
  const Value of_teacher = vit_classifier(root["distillation_classifier"], take(root, x, 1, 1), c.num_labels);
  return {div(root, add(root, of_class, of_teacher), 2)};
}

}  // namespace

const Family deit{
    .model_type = "deit",
    .stem = "DeiT",
    .prefix = "deit",
    .inputs = {"pixel_values"},
    .default_inputs = vit_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<vit_hidden_states, DeiTConfig>},
            {"image-classification", "ForImageClassification", {"logits"}, head<vit_image_classifier, DeiTConfig>},
            {"image-classification", "ForImageClassificationWithTeacher", {"logits"}, head<with_teacher>},
        },
};

}  // namespace mk::models
