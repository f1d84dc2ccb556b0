#include "winml/capability_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace mk::cli {
namespace {

Json as_json(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) {
      const std::string key = entry.first.as<std::string>();
      if (object.contains(key)) throw YAML::ParserException(entry.first.Mark(), "the key '" + key + "' is there twice");
      object[key] = as_json(entry.second);
    }
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : node) list.push_back(as_json(item));
    return list;
  }
  if (!node.IsScalar()) return nullptr;
  bool boolean = false;
  if (node.Tag() != "!" && YAML::convert<bool>::decode(node, boolean)) return boolean;
  std::int64_t integer = 0;
  if (node.Tag() != "!" && YAML::convert<std::int64_t>::decode(node, integer)) return integer;
  return node.Scalar();
}

Result<Json> read_yaml(const Path& path) {
  MK_TRY(const std::string text, read_text(path));
  try {
    const YAML::Node root = YAML::Load(text);
    return as_json(root);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::usage, std::string("Invalid YAML in config file: ") + error.what(), to_utf8(path));
  }
}

Result<Json> read_mapping(const Path& path) {
  const std::string suffix = lower_case(to_utf8(path.extension()));
  if (suffix == ".yaml" || suffix == ".yml") return read_yaml(path);
  if (suffix == ".json") return read_json(path, ErrorCode::usage);
  return fail(ErrorCode::usage, "Unsupported config format: " + suffix, to_utf8(path), "Use .yaml, .yml or .json");
}

}  // namespace

Result<std::map<std::string, bool>> read_capability_file(const Path& path) {
  MK_TRY(const Json json, read_mapping(path));
  JsonView view(json, to_utf8(path), ErrorCode::usage);
  for (const char* section : {"capabilities", "optim"}) {
    if (view.is_object() && view.has(section)) view = view.at(section);
  }
  std::map<std::string, bool> values;
  if (!view.is_object()) return tl::make_unexpected(view.expected("a mapping of capabilities to true or false"));
  std::set<std::string> spellings;
  for (const auto& [name, value] : view.json().items()) {
    MK_TRY(const bool on, view.at(name).boolean());
    std::string spelling = name;
    std::ranges::replace(spelling, '_', '-');
    if (!spellings.insert(std::move(spelling)).second)
      return tl::make_unexpected(view.at(name).error("the capability is there twice, in both spellings"));
    values[name] = on;
  }
  return values;
}

}  // namespace mk::cli
