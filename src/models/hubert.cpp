// Hsu et al. 2021, "HuBERT": wav2vec 2.0's encoder. Its adapters exist in layers only.

#include "models/families.h"
#include "models/wav2vec2.h"

namespace mk::models {
namespace {

struct HubertConfig : Wav2Vec2Config {
  static HubertConfig read(const Family& family, ConfigReader& fields) {
    HubertConfig c{Wav2Vec2Config::read(family, fields)};
    c.add_adapter = false;
    return c;
  }
};

}  // namespace

const Family hubert{
    .model_type = "hubert",
    .stem = "Hubert",
    .prefix = "hubert",
    .inputs = {"input_values"},
    .default_inputs = wave_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<wav2vec2_hidden_states, HubertConfig>},
            {"automatic-speech-recognition", "ForCTC", {"logits"}, head<wav2vec2_ctc, HubertConfig>},
            {"audio-classification", "ForSequenceClassification", {"logits"}, head<wav2vec2_classifier, HubertConfig>},
        },
};

}  // namespace mk::models
