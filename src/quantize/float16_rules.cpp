#include "quantize/float16_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "quantize/float16.h"

namespace mk {
namespace {

// As onnxruntime.transformers has it.
constexpr std::array<std::string_view, 28> blocked{"ArrayFeatureExtractor",
                                                   "Binarizer",
                                                   "CastMap",
                                                   "CategoryMapper",
                                                   "DictVectorizer",
                                                   "FeatureVectorizer",
                                                   "Imputer",
                                                   "LabelEncoder",
                                                   "LinearClassifier",
                                                   "LinearRegressor",
                                                   "Normalizer",
                                                   "OneHotEncoder",
                                                   "RandomUniformLike",
                                                   "SVMClassifier",
                                                   "SVMRegressor",
                                                   "Scaler",
                                                   "TreeEnsemble",
                                                   "TreeEnsembleClassifier",
                                                   "TreeEnsembleRegressor",
                                                   "ZipMap",
                                                   "NonMaxSuppression",
                                                   "TopK",
                                                   "RoiAlign",
                                                   "Range",
                                                   "CumSum",
                                                   "Min",
                                                   "Max",
                                                   "Upsample"};

constexpr std::uint32_t bit(int i) { return 1u << i; }

constexpr std::array contrib{
    Float16Contrib{"Attention"},
    Float16Contrib{"BiasAdd"},
    Float16Contrib{"BiasDropout", 0, 0, 0, bit(1)},
    Float16Contrib{"BiasGelu"},
    Float16Contrib{"BiasSoftmax"},
    Float16Contrib{"BiasSplitGelu"},
    Float16Contrib{"CDist", 0, 0, 0, 0, true},
    Float16Contrib{"DecoderMaskedMultiHeadAttention"},
    Float16Contrib{"DecoderMaskedSelfAttention"},
    Float16Contrib{"DequantizeLinear", 1, 0, 0, 0, true},
    Float16Contrib{"DynamicQuantizeLSTM", 0, 0, 0, 0, true},
    Float16Contrib{"DynamicQuantizeMatMul", 0, 0, 0, 0, true},
    Float16Contrib{"EmbedLayerNormalization", 2, 0, 0, bit(1)},
    Float16Contrib{"ExpandDims"},
    Float16Contrib{"FastGelu"},
    Float16Contrib{"FusedConv"},
    Float16Contrib{"FusedGemm"},
    Float16Contrib{"FusedMatMul"},
    Float16Contrib{"FusedMatMulActivation"},
    Float16Contrib{"GatedRelativePositionBias"},
    Float16Contrib{"GatherBlockQuantized", 2},
    Float16Contrib{"Gelu"},
    Float16Contrib{"GemmFastGelu"},
    Float16Contrib{"GroupNorm", 0, bit(1) | bit(2)},
    Float16Contrib{"GroupQueryAttention", 0, bit(12) | bit(13)},
    Float16Contrib{"LongformerAttention"},
    Float16Contrib{"MatMulBnb4"},
    Float16Contrib{"MatMulIntegerToFloat", 2, 0, 0, 0, true},
    Float16Contrib{"MatMulNBits"},
    Float16Contrib{"MultiHeadAttention"},
    Float16Contrib{"PackedAttention"},
    Float16Contrib{"PackedMultiHeadAttention"},
    Float16Contrib{"QAttention", 2, 0, 0, 0, true},
    Float16Contrib{"QuickGelu"},
    Float16Contrib{"RelativePositionBias"},
    Float16Contrib{"RemovePadding", 0, 0, 0, bit(1) | bit(2) | bit(3)},
    Float16Contrib{"RestorePadding"},
    Float16Contrib{"RotaryEmbedding"},
    Float16Contrib{"SkipGroupNorm", 0, bit(1) | bit(2)},
    Float16Contrib{"SkipLayerNormalization", 0, 0, bit(1) | bit(2)},
    Float16Contrib{"SkipSimplifiedLayerNormalization", 0, 0, bit(1) | bit(2)},
    Float16Contrib{"TransposeMatMul"},
    Float16Contrib{"Trilu"},
};

// In ONNX's own domain, where ONNX Runtime put them before (or without) a standard schema.
constexpr std::array contrib_in_onnx{
    Float16Contrib{"LayerNormalization", 0, 0, bit(1) | bit(2)},
    Float16Contrib{"SimplifiedLayerNormalization", 0, 0, bit(1)},
};

struct Refusal {
  std::string_view op_type;
  std::string_view why;
};
constexpr std::array refusals{
    Refusal{"BitCast", "its bits are those of a float32"},
    Refusal{"MeanVarianceNormalization", "it has no float16 in ONNX Runtime"},
    Refusal{"MelWeightMatrix", "it has no float16 in ONNX Runtime"},
    Refusal{"Optional", "sequences and optionals stay float32"},
    Refusal{"OptionalGetElement", "sequences and optionals stay float32"},
    Refusal{"OptionalHasElement", "sequences and optionals stay float32"},
    Refusal{"QLinearMatMul", "the scales of a quantized operator stay float32"},
};

constexpr std::array either{
    std::pair<std::string_view, std::size_t>{"Cast", 0},
    std::pair<std::string_view, std::size_t>{"CastLike", 0},
    std::pair<std::string_view, std::size_t>{"Shape", 0},
    std::pair<std::string_view, std::size_t>{"Size", 0},
};

constexpr std::array type_attributes{
    TypeAttribute{"Cast", "to", DataType::undefined},
    TypeAttribute{"BitCast", "to", DataType::undefined},
    TypeAttribute{"RandomNormal", "dtype", DataType::float32},
    TypeAttribute{"RandomUniform", "dtype", DataType::float32},
    TypeAttribute{"RandomNormalLike", "dtype", DataType::undefined},
    TypeAttribute{"RandomUniformLike", "dtype", DataType::undefined},
    TypeAttribute{"Bernoulli", "dtype", DataType::undefined},
    TypeAttribute{"EyeLike", "dtype", DataType::undefined},
    TypeAttribute{"Multinomial", "dtype", DataType::int32},
    TypeAttribute{"HannWindow", "output_datatype", DataType::float32},
    TypeAttribute{"HammingWindow", "output_datatype", DataType::float32},
    TypeAttribute{"BlackmanWindow", "output_datatype", DataType::float32},
    TypeAttribute{"MelWeightMatrix", "output_datatype", DataType::float32},
};

template <typename Row, std::size_t count>
const Row* row_of(const std::array<Row, count>& rows, std::string_view op_type) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.op_type == op_type; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const std::string_view> default_float16_blocked_ops() { return blocked; }

const Float16Contrib* float16_contrib(std::string_view domain, std::string_view op_type) {
  if (domain == "com.microsoft") return row_of(contrib, op_type);
  return is_onnx_domain(domain) ? row_of(contrib_in_onnx, op_type) : nullptr;
}

std::string_view float16_refusal(const Node& node) {
  // ONNX Runtime loads such a node in float16, but does not run it.
  constexpr std::array<std::string_view, 2> scatters{"ScatterElements", "ScatterND"};
  if (std::find(scatters.begin(), scatters.end(), node.op_type) != scatters.end() &&
      node.string("reduction", "none") != "none")
    return "its reduction has no float16 in ONNX Runtime";
  const Refusal* found = row_of(refusals, node.op_type);
  return found ? found->why : std::string_view();
}

bool float16_takes_either(const Node& node, std::size_t index) {
  return is_onnx_domain(node.domain) &&
         std::find(either.begin(), either.end(), std::pair<std::string_view, std::size_t>(node.op_type, index)) !=
             either.end();
}

const TypeAttribute* type_attribute(const Node& node) {
  return is_onnx_domain(node.domain) ? row_of(type_attributes, node.op_type) : nullptr;
}

}  // namespace mk
