// Reading preprocessor_config.json: the classes that are known, their defaults, and the forms that fields have had.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/json.h"
#include "images/processor.h"

namespace mk {
namespace {

using Triple = std::array<double, 3>;
constexpr Triple standard = {0.5, 0.5, 0.5};
constexpr Triple clip_mean = {0.48145466, 0.4578275, 0.40821073};
constexpr Triple clip_std = {0.26862954, 0.26130258, 0.27577711};

enum class Sizing {
  exact,          // {height, width}; a number is a square
  shortest_edge,  // a number is the shorter edge
  crop_percent,   // ConvNeXt: shorter edge / crop_pct, then a square crop; squeezed to a square from 384 on
};

struct Class {
  std::string_view name;
  Sizing sizing;
  int size;
  Resample resample;
  int crop;  // 0: the class does not crop
  Triple mean;
  Triple std;
};

constexpr std::array classes{
    Class{"ViTImageProcessor", Sizing::exact, 224, Resample::bilinear, 0, standard, standard},
    Class{"DeiTImageProcessor", Sizing::exact, 256, Resample::bicubic, 224, standard, standard},
    Class{"BeitImageProcessor", Sizing::exact, 256, Resample::bicubic, 224, standard, standard},
    Class{"ConvNextImageProcessor", Sizing::crop_percent, 384, Resample::bilinear, 0, standard, standard},
    Class{"BitImageProcessor", Sizing::shortest_edge, 224, Resample::bicubic, 224, clip_mean, clip_std},
    Class{"CLIPImageProcessor", Sizing::shortest_edge, 224, Resample::bicubic, 224, clip_mean, clip_std},
};

// The class that transformers takes for a model type where the file names none.
struct TypeRow {
  std::string_view model_type;
  std::string_view name;
};
constexpr std::array model_types{
    TypeRow{"vit", "ViTImageProcessor"},           TypeRow{"swin", "ViTImageProcessor"},
    TypeRow{"swinv2", "ViTImageProcessor"},        TypeRow{"deit", "DeiTImageProcessor"},
    TypeRow{"beit", "BeitImageProcessor"},         TypeRow{"data2vec-vision", "BeitImageProcessor"},
    TypeRow{"convnext", "ConvNextImageProcessor"}, TypeRow{"convnextv2", "ConvNextImageProcessor"},
    TypeRow{"resnet", "ConvNextImageProcessor"},   TypeRow{"bit", "BitImageProcessor"},
    TypeRow{"dinov2", "BitImageProcessor"},        TypeRow{"clip", "CLIPImageProcessor"},
};

constexpr std::int64_t largest_edge = 1 << 16;

// "ViTImageProcessorFast" and the old "ViTFeatureExtractor" are ViTImageProcessor.
std::string canonical(std::string name) {
  constexpr std::string_view fast = "Fast", old = "FeatureExtractor";
  if (name.ends_with(fast)) name.resize(name.size() - fast.size());
  if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), "ImageProcessor");
  return name;
}

std::string known_classes() {
  std::string list;
  for (const Class& c : classes) list += (list.empty() ? "" : ", ") + std::string(c.name);
  return list;
}

Result<const Class*> find_class(const JsonView& config, std::string_view model_type) {
  std::string name;
  for (const std::string_view key : {"image_processor_type", "feature_extractor_type"})
    if (name.empty() && config.has(key)) {
      MK_TRY(name, config.at(key).string());
    }
  if (name.empty()) {
    const auto* row = std::find_if(model_types.begin(), model_types.end(),
                                   [&](const TypeRow& r) { return r.model_type == model_type; });
    if (row == model_types.end())
      return tl::make_unexpected(config.error("image_processor_type is missing", "known are " + known_classes()));
    name = row->name;
  }
  const std::string wanted = canonical(name);
  const auto* found = std::find_if(classes.begin(), classes.end(), [&](const Class& c) { return c.name == wanted; });
  if (found == classes.end())
    return fail(ErrorCode::unsupported, "image processor " + name + " is not supported", config.where(),
                "known are " + known_classes());
  return found;
}

Result<int> edge(const JsonView& view) {
  MK_TRY(const auto value, view.integer());
  if (value <= 0 || value > largest_edge) return tl::make_unexpected(view.expected("a size in pixels"));
  return static_cast<int>(value);
}

Result<ImageSize> height_width(const JsonView& view) {
  ImageSize size;
  if (view.is_array() && view.size() == 2) {
    MK_TRY(size.height, edge(view.at(std::size_t{0})));
    MK_TRY(size.width, edge(view.at(1)));
  } else if (view.is_object() && view.has("height") && view.has("width")) {
    MK_TRY(size.height, edge(view.at("height")));
    MK_TRY(size.width, edge(view.at("width")));
  } else if (view.is_number()) {
    MK_TRY(size.height, edge(view));
    size.width = size.height;
  } else {
    return tl::make_unexpected(view.expected("height and width"));
  }
  return size;
}

// A number for all channels, or three.
Result<Triple> triple(const JsonView& view) {
  if (view.is_number()) {
    MK_TRY(const double value, view.number());
    return Triple{value, value, value};
  }
  MK_TRY(const auto values, view.numbers());
  if (values.size() != 3) return tl::make_unexpected(view.expected("three numbers, for red, green and blue"));
  return Triple{values[0], values[1], values[2]};
}

// Present but null is false, as in Python.
Result<bool> flag(const JsonView& config, std::string_view key, bool absent) {
  if (config.has(key)) return config.at(key).boolean();
  return config.json().contains(key) ? false : absent;
}

}  // namespace

struct ProcessorReader {
  const JsonView& config;
  const Class& defaults;
  ImageProcessor out;

  Status read_size() {
    MK_TRY(const bool resizes, flag(config, "do_resize", true));
    if (!resizes) return {};
    MK_CHECK(read_resample());
    const JsonView size = config.at("size");
    if (defaults.sizing == Sizing::crop_percent) return read_crop_percent(size);
    if (size.is_null()) {
      if (defaults.sizing == Sizing::exact)
        out.exact_ = ImageSize{defaults.size, defaults.size};
      else
        out.shortest_edge_ = defaults.size;
      return {};
    }
    if (size.is_object() && size.has("shortest_edge")) {
      MK_TRY(out.shortest_edge_, edge(size.at("shortest_edge")));
    } else if (size.is_number() && defaults.sizing == Sizing::shortest_edge) {
      MK_TRY(out.shortest_edge_, edge(size));
    } else {
      MK_TRY(out.exact_, height_width(size));
    }
    return {};
  }

  Status read_crop_percent(const JsonView& size) {
    int shortest = defaults.size;
    if (size.is_object()) {
      MK_TRY(shortest, edge(size.at("shortest_edge")));
    } else if (!size.is_null()) {
      MK_TRY(shortest, edge(size));
    }
    if (shortest >= 384) {
      out.exact_ = ImageSize{shortest, shortest};
      return {};
    }
    double percent = 224.0 / 256.0;
    if (config.has("crop_pct")) {
      MK_TRY(percent, config.at("crop_pct").number());
    }
    if (!(percent > 0.0 && shortest / percent <= static_cast<double>(largest_edge)))
      return tl::make_unexpected(config.at("crop_pct").expected("a fraction above 0"));
    out.shortest_edge_ = std::max(static_cast<int>(shortest / percent), 1);
    out.crop_ = ImageSize{shortest, shortest};
    return {};
  }

  Status read_resample() {
    out.resample_ = defaults.resample;
    if (config.has("resample")) {
      MK_TRY(const auto number, config.at("resample").integer());
      if (number < 0 || number > 5)
        return tl::make_unexpected(
            config.at("resample")
                .expected("0 (nearest), 1 (lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (hamming)"));
      out.resample_ = static_cast<Resample>(number);
    }
    return {};
  }

  Status read_crop() {
    if (defaults.crop == 0) return {};
    MK_TRY(const bool crops, flag(config, "do_center_crop", true));
    if (!crops) return {};
    out.crop_ = ImageSize{defaults.crop, defaults.crop};
    if (config.has("crop_size")) {
      MK_TRY(out.crop_, height_width(config.at("crop_size")));
    }
    return {};
  }

  // What a byte of each channel becomes, in the precisions that numpy has there.
  Status read_values() {
    MK_TRY(const bool rescales, flag(config, "do_rescale", true));
    MK_TRY(const bool normalizes, flag(config, "do_normalize", true));
    double factor = 1.0 / 255.0;
    if (config.has("rescale_factor")) {
      MK_TRY(factor, config.at("rescale_factor").number());
    }
    Triple mean = defaults.mean, std = defaults.std;
    if (config.has("image_mean")) {
      MK_TRY(mean, triple(config.at("image_mean")));
    }
    if (config.has("image_std")) {
      MK_TRY(std, triple(config.at("image_std")));
    }
    for (std::size_t c = 0; c < 3; ++c) {
      const auto m = static_cast<float>(mean[c]), s = static_cast<float>(std[c]);
      if (normalizes && (s == 0.0F || !std::isfinite(s) || !std::isfinite(m)))
        return tl::make_unexpected(config.at("image_std").expected("finite numbers other than 0"));
      for (std::size_t byte = 0; byte < 256; ++byte) {
        auto value = static_cast<float>(byte);
        if (rescales) value = static_cast<float>(static_cast<double>(byte) * factor);
        if (normalizes) value = (value - m) / s;
        out.values_[c][byte] = value;
      }
    }
    return {};
  }
};

Result<ImageProcessor> ImageProcessor::parse(const JsonView& config, std::string_view model_type) {
  if (!config.is_object()) return tl::make_unexpected(config.expected("an object"));
  MK_TRY(const Class* found, find_class(config, model_type));
  ProcessorReader reader{config, *found, {}};
  reader.out.name_ = found->name;
  MK_CHECK(reader.read_size());
  MK_CHECK(reader.read_crop());
  MK_CHECK(reader.read_values());
  return std::move(reader.out);
}

Result<std::optional<ImageSize>> preprocessed_size(const Path& folder) {
  const Path file = folder / "preprocessor_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  if (const auto processor = ImageProcessor::load(folder); processor && processor->fixed_size())
    return processor->fixed_size();
  MK_TRY(const Json json, read_json(file));
  const JsonView config(json, to_utf8(file));
  MK_TRY(const bool crops, flag(config, "do_center_crop", true));
  const JsonView size = crops && config.has("crop_size") ? config.at("crop_size") : config.at("size");
  if (size.is_null()) return std::nullopt;
  const bool has_edge = size.is_object() && size.has("shortest_edge");
  MK_TRY(const ImageSize found, height_width(has_edge ? size.at("shortest_edge") : size));
  return found;
}

Result<ImageProcessor> ImageProcessor::load(const Path& folder) {
  const Path file = folder / "preprocessor_config.json";
  MK_TRY(const Json json, read_json(file));
  std::string model_type;
  std::error_code ignored;
  if (const Path config = folder / "config.json"; std::filesystem::exists(config, ignored)) {
    MK_TRY(const Json model, read_json(config));
    const JsonView view(model, to_utf8(config));
    if (view.is_object() && view.has("model_type")) {
      MK_TRY(model_type, view.at("model_type").string());
    }
  }
  return parse(JsonView(json, to_utf8(file)), model_type);
}

}  // namespace mk
