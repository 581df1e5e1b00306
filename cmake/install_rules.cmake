# `cmake --install`: headers, libepona.so, the program, and the package files for find_package(epona).
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/epona")
if(SKBUILD)
  # The wheel holds the Python package (copied by scikit-build-core), its extension and the program.
  install(TARGETS _epona LIBRARY DESTINATION epona)
  install(TARGETS epona_cli RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}")
  return()
endif()
install(TARGETS epona EXPORT epona LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS epona_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/epona DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT epona NAMESPACE epona:: FILE eponaTargets.cmake DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/eponaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
file(WRITE "${PROJECT_BINARY_DIR}/eponaConfig.cmake"
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/eponaTargets.cmake\")\n")
install(FILES "${PROJECT_BINARY_DIR}/eponaConfig.cmake" "${PROJECT_BINARY_DIR}/eponaConfigVersion.cmake"
        DESTINATION "${config_dir}")
