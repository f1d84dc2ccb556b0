#pragma once
// The IR as ONNX messages, written to a WireWriter in the order of their field numbers.

#include "graph/external_layout.h"
#include "graph/ir.h"
#include "graph/wire_writer.h"

namespace mk {

// `layout` is null where all data goes inline. Called twice for one file: see WireWriter.
void write_model(WireWriter& out, const Model& model, const ExternalLayout* layout);

}  // namespace mk
