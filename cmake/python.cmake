# The extension epona._epona, beside links to the package's Python files: <build>/python is importable as it is.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind 3.1 CONFIG REQUIRED)

file(GLOB python_src CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cc")
nanobind_add_module(_epona NB_STATIC NOSTRIP NOMINSIZE ${python_src})
target_link_libraries(_epona PRIVATE epona_core)
epona_precompile_headers(_epona "${PROJECT_SOURCE_DIR}/python/src/binding.h")
epona_hide_symbols(_epona "${PROJECT_SOURCE_DIR}/cmake/extension.map")
set_target_properties(_epona PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/epona")

file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python"
     "${PROJECT_SOURCE_DIR}/python/epona/*.py" "${PROJECT_SOURCE_DIR}/python/epona/*.pyi"
     "${PROJECT_SOURCE_DIR}/python/epona/py.typed")
foreach(file ${python_files})
  get_filename_component(folder "${PROJECT_BINARY_DIR}/python/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/${file}" "${PROJECT_BINARY_DIR}/python/${file}" SYMBOLIC)
endforeach()
