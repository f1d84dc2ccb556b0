#pragma once
// The models out of published packages that tests here run on, with inputs that they accept.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/path.h"
#include "runtime/host_tensor.h"

namespace mk {

struct PublishedModel {
  const char* file;  // below the models folder of the cache
  std::int64_t opset;
  std::uint64_t nodes;           // as the onnx library counts them: of the main graph
  std::uint64_t subgraph_nodes;  // and in sub-graphs
  bool quantized;
  std::vector<HostTensor> (*inputs)();

  Path path() const;
};

std::span<const PublishedModel> published_models();
std::string title_of(const ::testing::TestParamInfo<PublishedModel>& info);

}  // namespace mk
