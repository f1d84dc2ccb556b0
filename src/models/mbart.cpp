// How the families of BART's kind differ.

#include <algorithm>
#include <array>

#include "models/bart.h"
#include "models/families.h"

namespace mk::models {
namespace {

// model_type, positions, pre_norm, embedding_norm, norm_before_positions, scaled_word_embedding, shared_module,
// logits_bias, activation, positions_count
constexpr std::array styles{
    BartStyle{"bart", BartPositions::learned_from_2, false, true, false, true, false, true, "gelu", 1024},
    BartStyle{"mbart", BartPositions::learned_from_2, true, true, false, true, false, true, "gelu", 1024},
    BartStyle{"marian", BartPositions::sinusoids, false, false, false, false, false, true, "gelu", 1024},
    BartStyle{"pegasus", BartPositions::sinusoids, true, false, false, false, false, true, "gelu", 1024},
    BartStyle{"m2m_100", BartPositions::padded_sinusoids, true, false, false, true, false, false, "relu", 1024},
    BartStyle{"blenderbot", BartPositions::learned, true, false, false, true, true, true, "gelu", 128},
    BartStyle{"blenderbot-small", BartPositions::learned, false, true, true, false, false, true, "gelu", 512},
};

}  // namespace

const BartStyle& bart_style(std::string_view model_type) {
  return *std::ranges::find(styles, model_type, &BartStyle::model_type);
}

const Family mbart = bart_family("mbart", "MBart", "ForConditionalGeneration", {"translation", "summarization"});
const Family marian = bart_family("marian", "Marian", "MTModel", {"translation"});
const Family pegasus = bart_family("pegasus", "Pegasus", "ForConditionalGeneration", {"summarization"});
const Family m2m_100 = bart_family("m2m_100", "M2M100", "ForConditionalGeneration", {"translation"});
const Family blenderbot = bart_family("blenderbot", "Blenderbot", "ForConditionalGeneration", {"text2text-generation"});
const Family blenderbot_small =
    bart_family("blenderbot-small", "BlenderbotSmall", "ForConditionalGeneration", {"text2text-generation"});

}  // namespace mk::models
