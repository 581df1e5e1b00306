# One set of flags for every file of ours, so that a compiler cache hits across targets and checkouts.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

add_library(epona_flags INTERFACE)
target_compile_options(epona_flags INTERFACE -Wall -Wextra)
if(EPONA_WERROR)
  target_compile_options(epona_flags INTERFACE -Werror)
endif()
if(EPONA_FUZZ)
  target_compile_options(epona_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(EPONA_SANITIZE)
  # -O1 overrides the build type's -O2: a third of the compile time, and stacks that can be read.
  target_compile_options(epona_flags INTERFACE -fsanitize=${EPONA_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(epona_flags INTERFACE -fsanitize=${EPONA_SANITIZE})
  if(EPONA_SANITIZE MATCHES "undefined")
    target_compile_options(epona_flags INTERFACE -fsanitize=float-cast-overflow)
  endif()
  # Instrumented product tiles take minutes each: tiers that this machine cannot run are left out of them.
  set(cpu_flags "")
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT cpu_flags MATCHES "avx512f")
    target_compile_definitions(epona_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_AVX3|HWY_AVX3_DL)")
  endif()
endif()

# Flags of single kernel files. g++ 12's partial redundancy elimination hoists the constants of integer dot products out
# of registers and back.
function(epona_kernel_flags)
  foreach(file ${ARGN})
    if(file MATCHES "/src/kernels/")
      set_source_files_properties("${file}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
    if(file MATCHES "/src/kernels/[^/]*int8[^/]*\\.cc$" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "-fno-tree-pre")
    endif()
  endforeach()
endfunction()

# Export what the version script names and nothing else, whatever the archives linked in say.
function(epona_hide_symbols target script)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${script}" "LINKER:-Bsymbolic"
                      "LINKER:--gc-sections")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  target_link_options(${target} PRIVATE "LINKER:-z,relro,-z,now")
endfunction()

# What nearly every file includes is parsed once: headers take most of the compile time. Kernels, which know nothing of
# graphs, and the builds of `make werror` (CMAKE_DISABLE_PRECOMPILE_HEADERS) go without: there each file has to include
# what it uses.
function(epona_precompile_headers target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional>
                            <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
                            <unordered_map> <unordered_set> <utility> <vector> ${ARGN})
endfunction()
