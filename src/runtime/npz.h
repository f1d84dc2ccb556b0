#pragma once
// Arrays that numpy saved: .npz archives of .npy files (numpy.lib.format, versions 1 to 3).

#include <span>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "runtime/host_tensor.h"
#include "runtime/session.h"

namespace mk {

// Every array of the archive under its key, in the archive's order. Big-endian and column-major arrays are turned.
// not_found, usage for a file that is no .npz (a .npy: with how to wrap it), malformed, and unsupported for arrays of
// text or Python objects, naming the key.
Result<std::vector<HostTensor>> read_npz(const Path& path);

// usage, listing what is missing and what is unexpected, unless the arrays are exactly the inputs.
Status check_names(std::span<const HostTensor> arrays, std::span<const Port> inputs, std::string_view where);

// One .npy file in memory. `name` is the tensor's name, and what errors call it.
Result<HostTensor> parse_npy(std::span<const std::byte> bytes, std::string_view name);

}  // namespace mk
