#pragma once
// Inside compare: the same inputs for two models, drawn or read from an archive, each in the types its model takes.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "eval/compare.h"

namespace mk {

class CompareInputs {
 public:
  struct Pair {
    std::vector<HostTensor> candidate;
    std::vector<HostTensor> reference;
  };

  static Result<CompareInputs> make(const Session& candidate, const Session& reference,
                                    const std::map<std::string, ValueRange>& ranges, const CompareOptions& options,
                                    Progress& progress);

  std::int64_t samples() const { return samples_; }
  const std::vector<std::pair<std::string, std::int64_t>>& dynamic() const { return dynamic_; }
  Result<Pair> next();

 private:
  explicit CompareInputs(std::uint64_t seed) : random_(seed) {}
  Status read_archive(const Path& path, const std::vector<Port>& ports, Progress& progress);

  std::map<std::string, DataType> candidate_types_, reference_types_;
  std::vector<DrawSpec> specs_;
  std::vector<HostTensor> archive_;  // whole arrays; empty where inputs are drawn
  std::int64_t batch_ = 1;           // rows of the archive per sample
  std::int64_t samples_ = 0;
  std::int64_t position_ = 0;
  std::vector<std::pair<std::string, std::int64_t>> dynamic_;
  Random random_;
};

}  // namespace mk
