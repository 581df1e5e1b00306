# libprotobuf-lite 3.21.12, and a protoc of the same version: the system's where there is one, else built here.
set(pb "${third_party}/protobuf/src/google/protobuf")
set(pb_version 3.21.12)

set(pb_lite any_lite arena arenastring arenaz_sampler extension_set generated_enum_util generated_message_tctable_lite
    generated_message_util implicit_weak_message inlined_string_field io/coded_stream io/strtod io/zero_copy_stream
    io/zero_copy_stream_impl io/zero_copy_stream_impl_lite map message_lite parse_context repeated_field
    repeated_ptr_field stubs/bytestream stubs/common stubs/int128 stubs/status stubs/statusor stubs/stringpiece
    stubs/stringprintf stubs/structurally_valid stubs/strutil stubs/time wire_format_lite)
list(TRANSFORM pb_lite PREPEND "${pb}/")
list(TRANSFORM pb_lite APPEND ".cc")

add_library(epona_protobuf STATIC ${pb_lite})
target_include_directories(epona_protobuf SYSTEM PUBLIC "${third_party}/protobuf/src")
target_compile_definitions(epona_protobuf PRIVATE HAVE_PTHREAD=1)
target_link_libraries(epona_protobuf PUBLIC Threads::Threads)
install(DIRECTORY "${third_party}/protobuf/src/google" DESTINATION include
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "compiler" EXCLUDE PATTERN "util" EXCLUDE)

find_program(EPONA_PROTOC protoc DOC "protoc ${pb_version}; another version is not used")
if(EPONA_PROTOC)
  execute_process(COMMAND "${EPONA_PROTOC}" --version OUTPUT_VARIABLE protoc_version ERROR_QUIET)
endif()
if(protoc_version MATCHES "libprotoc ${pb_version}")
  set(epona_protoc "${EPONA_PROTOC}")
else()
  file(GLOB pb_full CONFIGURE_DEPENDS "${pb}/*.cc" "${pb}/io/*.cc" "${pb}/stubs/*.cc" "${pb}/compiler/*.cc"
       "${pb}/compiler/cpp/*.cc")
  list(FILTER pb_full EXCLUDE REGEX "(test|mock|/main\\.cc|gzip_stream|io_win32|test_plugin)")
  list(REMOVE_ITEM pb_full ${pb_lite})
  add_executable(epona_protoc EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/protoc_main.cc" ${pb_full})
  target_link_libraries(epona_protoc PRIVATE epona_protobuf)
  target_compile_definitions(epona_protoc PRIVATE HAVE_PTHREAD=1)
  target_compile_options(epona_protoc PRIVATE -O0)
  set(epona_protoc $<TARGET_FILE:epona_protoc>)
endif()
