find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)

# ONNX (schemas, checker, shape functions): a static library that tools/bootstrap builds from its source release.
# Protobuf is the lite runtime, linked statically like ONNX itself.
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
set(onnx_root "${MODELKIT_DEPS}/onnx-1.23.2")
if(NOT EXISTS "${onnx_root}/lib/libonnx.a")
  message(FATAL_ERROR "${onnx_root} has no libonnx.a; run tools/bootstrap first")
endif()
add_library(onnx_schema INTERFACE)
target_include_directories(onnx_schema SYSTEM INTERFACE "${onnx_root}/include")
target_compile_definitions(onnx_schema INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx __STDC_FORMAT_MACROS)
target_link_libraries(onnx_schema INTERFACE
  "${onnx_root}/lib/libonnx.a" "${onnx_root}/lib/libonnx_proto.a" protobuf::libprotobuf-lite)

# ONNX Runtime: only its headers. The library is loaded when a session is needed.
set(ort_root "${MODELKIT_DEPS}/onnxruntime-1.32.0")
add_library(onnxruntime_headers INTERFACE)
target_include_directories(onnxruntime_headers SYSTEM INTERFACE "${ort_root}/include")

# libcurl: only its headers, too.
find_path(curl_headers curl/curl.h REQUIRED)

find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_library(webp_library webp REQUIRED)
find_library(webp_demux_library webpdemux REQUIRED)
find_library(zip_library zip REQUIRED)  # npz archives
find_library(yaml_library NAMES libyaml-cpp.a yaml-cpp REQUIRED)  # configs of `winml optimize`

if(MODELKIT_TESTS)
  find_package(GTest REQUIRED)
endif()
