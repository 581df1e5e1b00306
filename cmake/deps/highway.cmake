# Highway 1.3: the parts that the kernels need (targets and their choice, aligned memory, timer).
set(hwy "${third_party}/highway")
set(hwy_src abort aligned_allocator per_target perf_counters print targets timer)
list(TRANSFORM hwy_src PREPEND "${hwy}/hwy/")
list(TRANSFORM hwy_src APPEND ".cc")
add_library(epona_highway STATIC ${hwy_src})
target_include_directories(epona_highway SYSTEM PUBLIC "${hwy}")
target_compile_definitions(epona_highway PUBLIC HWY_STATIC_DEFINE)
install(DIRECTORY "${hwy}/hwy" DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "tests" EXCLUDE
        PATTERN "examples" EXCLUDE)
