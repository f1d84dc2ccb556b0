//! ModelKit's bridge to Rust libraries: a static library with a C interface, whose contract is in include/modelkit_bridge.

mod border;
mod encode;
mod footer;
mod parquet_file;
mod tokenizer;
