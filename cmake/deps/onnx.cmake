# The onnx C++ library (checker, schemas, shape inference, version conversion, inliner, text syntax) on protobuf-lite.
set(onnx "${third_party}/onnx")
set(onnx_gen "${CMAKE_CURRENT_BINARY_DIR}/onnx_proto")
set(onnx_proto_src "")
foreach(name onnx-ml onnx-operators-ml onnx-data)
  set(stem "${onnx_gen}/onnx/${name}.pb")
  add_custom_command(
    OUTPUT "${stem}.cc" "${stem}.h"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${onnx_gen}"
    COMMAND "${epona_protoc}" "-I${onnx}" "--cpp_out=${onnx_gen}" "${onnx}/onnx/${name}.proto"
    DEPENDS "${onnx}/onnx/${name}.proto" "${epona_protoc}" VERBATIM)
  list(APPEND onnx_proto_src "${stem}.cc")
endforeach()

file(GLOB onnx_src CONFIGURE_DEPENDS "${onnx}/onnx/*.cc" "${onnx}/onnx/common/*.cc" "${onnx}/onnx/defs/*.cc"
     "${onnx}/onnx/defs/*/*.cc" "${onnx}/onnx/inliner/*.cc" "${onnx}/onnx/shape_inference/*.cc"
     "${onnx}/onnx/version_converter/*.cc")
list(FILTER onnx_src EXCLUDE REGEX "cpp2py_export")

add_library(epona_onnx STATIC ${onnx_src} ${onnx_proto_src})
set_target_properties(epona_onnx PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
# These define or use specialisations that other files of the unit may have instantiated before.
set(onnx_alone "${onnx}/onnx/defs/schema.cc" "${onnx}/onnx/defs/tensor_proto_util.cc")
set_source_files_properties(${onnx_proto_src} ${onnx_alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(epona_onnx SYSTEM PUBLIC "${onnx}" "${onnx_gen}")
target_compile_definitions(epona_onnx PUBLIC ONNX_NAMESPACE=onnx ONNX_ML=1)
target_link_libraries(epona_onnx PUBLIC epona_protobuf)
install(DIRECTORY "${onnx}/onnx" "${onnx_gen}/onnx" DESTINATION include FILES_MATCHING PATTERN "*.h"
        PATTERN "backend" EXCLUDE PATTERN "test" EXCLUDE)
