# bridge: the Rust static library of bridge/, built by tools/build-bridge into the cache when it is not there yet.
set(bridge_environment ${CMAKE_COMMAND} -E env "MODELKIT_CACHE=${MODELKIT_DEPS}")
execute_process(COMMAND ${bridge_environment} "${PROJECT_SOURCE_DIR}/tools/build-bridge" --path
                OUTPUT_VARIABLE bridge_library OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE bridge_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bridge/src/*.rs")
list(APPEND bridge_sources "${PROJECT_SOURCE_DIR}/bridge/Cargo.toml" "${PROJECT_SOURCE_DIR}/bridge/Cargo.lock")
# The library's path holds the hash of the sources.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${bridge_sources})

add_custom_command(OUTPUT "${bridge_library}"
                   COMMAND ${bridge_environment} "${PROJECT_SOURCE_DIR}/tools/build-bridge"
                   COMMENT "Building the Rust bridge" USES_TERMINAL VERBATIM)
add_custom_target(bridge_build DEPENDS "${bridge_library}")
add_library(bridge INTERFACE)
add_dependencies(bridge bridge_build)
target_include_directories(bridge SYSTEM INTERFACE "${PROJECT_SOURCE_DIR}/bridge/include")
target_link_libraries(bridge INTERFACE "${bridge_library}" Threads::Threads ${CMAKE_DL_LIBS} m)
