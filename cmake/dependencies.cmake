# onnx, protobuf-lite and Highway: imported from EPONA_DEPS_PREFIX, or built here from third_party/.
find_package(Threads REQUIRED)
if(EPONA_DEPS_PREFIX)
  foreach(name protobuf onnx highway)
    set(archive "${EPONA_DEPS_PREFIX}/lib/libepona_${name}.a")
    if(NOT EXISTS "${archive}")
      message(FATAL_ERROR "EPONA_DEPS_PREFIX: ${archive} is missing; build and install cmake/deps there")
    endif()
    add_library(epona_${name} STATIC IMPORTED)
    set_target_properties(epona_${name} PROPERTIES IMPORTED_LOCATION "${archive}"
                          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${EPONA_DEPS_PREFIX}/include"
                          INTERFACE_INCLUDE_DIRECTORIES "${EPONA_DEPS_PREFIX}/include")
  endforeach()
  set_property(TARGET epona_onnx PROPERTY INTERFACE_COMPILE_DEFINITIONS ONNX_NAMESPACE=onnx ONNX_ML=1)
  set_property(TARGET epona_onnx PROPERTY INTERFACE_LINK_LIBRARIES epona_protobuf)
  set_property(TARGET epona_protobuf PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads)
  set_property(TARGET epona_highway PROPERTY INTERFACE_COMPILE_DEFINITIONS HWY_STATIC_DEFINE)
else()
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/third_party.py"
                  COMMAND_ERROR_IS_FATAL ANY)
  add_subdirectory("${PROJECT_SOURCE_DIR}/cmake/deps" "${PROJECT_BINARY_DIR}/deps" EXCLUDE_FROM_ALL)
endif()
