#include "runtime/random_samples.h"

#include <utility>

#include "runtime/random_inputs.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

class RandomSamples final : public SampleSource {
 public:
  RandomSamples(std::vector<DrawSpec> specs, std::size_t count, std::uint64_t seed)
      : specs_(std::move(specs)), count_(count), seed_(seed) {}
  std::size_t size() const override { return count_; }
  // Samples are asked for in order as a rule; any other one is reached by drawing those before it.
  Result<std::vector<HostTensor>> sample(std::size_t number) const override {
    if (number < next_) restart();
    for (;;) {
      MK_TRY(auto inputs, random_inputs(specs_, random_));
      if (next_++ == number) return inputs;
    }
  }
  std::string description() const override { return "random values in the inputs' ranges"; }

 private:
  void restart() const {
    random_ = Random(seed_);
    next_ = 0;
  }
  std::vector<DrawSpec> specs_;
  std::size_t count_;
  std::uint64_t seed_;
  mutable Random random_{seed_};
  mutable std::size_t next_ = 0;
};

}  // namespace

std::vector<Port> input_ports(const Model& model) {
  std::vector<Port> ports;
  for (const Value* input : model.graph->inputs())
    if (!input->initializer()) ports.push_back({input->name(), input->type});
  return ports;
}

Result<std::unique_ptr<SampleSource>> random_samples(const Model& model, std::size_t count, std::uint64_t seed,
                                                     const ShapeOverrides& shapes) {
  const std::vector<Port> ports = input_ports(model);
  MK_TRY(ChosenShapes chosen, choose_shapes(ports, shapes, 1));
  apply_ranges(value_ranges(model), chosen.inputs);
  return std::make_unique<RandomSamples>(std::move(chosen.inputs), count, seed);
}

}  // namespace mk
