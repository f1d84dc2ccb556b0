#include "models/bart.h"
#include "models/families.h"

namespace mk::models {

const Family mbart = bart_family("mbart", "MBart", "ForConditionalGeneration", {"translation", "summarization"});
const Family marian = bart_family("marian", "Marian", "MTModel", {"translation"});
const Family pegasus = bart_family("pegasus", "Pegasus", "ForConditionalGeneration", {"summarization"});
const Family m2m_100 = bart_family("m2m_100", "M2M100", "ForConditionalGeneration", {"translation"});
const Family blenderbot = bart_family("blenderbot", "Blenderbot", "ForConditionalGeneration", {"text2text-generation"});
const Family blenderbot_small =
    bart_family("blenderbot-small", "BlenderbotSmall", "ForConditionalGeneration", {"text2text-generation"});

}  // namespace mk::models
