#pragma once
// Where each initializer of a model goes in its one external data file. Tensors that share their bytes share the place.
// Offsets are multiples of 64 bytes; from 1 MiB on of 64 KiB, which both Linux and Windows need to map a tensor.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir.h"

namespace mk {

struct ExternalLayout {
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  struct Block {
    Place place;
    const ByteSource* source = nullptr;
  };

  std::string location;  // the data file's bare name
  std::string checksum;  // SHA-1 of the file where the model came with such checksums; else empty
  std::unordered_map<const Tensor*, Place> places;
  std::vector<Block> blocks;  // in order of offset
  bool wants_checksum = false;
  std::uint64_t bytes = 0;

  static std::uint64_t alignment_of(std::uint64_t length);
};

// Of initializers (sub-graphs' too) with at least `inline_below` bytes of data.
ExternalLayout lay_out(const Model& model, std::string location, std::uint64_t inline_below);

}  // namespace mk
