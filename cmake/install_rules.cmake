# Component sdk (`cmake --install BUILD --component sdk`): headers, libepona.so, the program, and the package files for
# find_package(epona). Component python: what a wheel holds besides the Python files.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/epona")
install(TARGETS epona EXPORT epona
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT sdk NAMELINK_COMPONENT sdk)
install(TARGETS epona_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT sdk)
install(DIRECTORY include/epona DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT sdk FILES_MATCHING PATTERN "*.h")
install(EXPORT epona NAMESPACE epona:: FILE eponaTargets.cmake DESTINATION "${config_dir}" COMPONENT sdk)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/eponaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/eponaConfig.cmake" @ONLY
     CONTENT "include(\"\${CMAKE_CURRENT_LIST_DIR}/eponaTargets.cmake\")\n")
install(FILES "${PROJECT_BINARY_DIR}/eponaConfig.cmake" "${PROJECT_BINARY_DIR}/eponaConfigVersion.cmake"
        DESTINATION "${config_dir}" COMPONENT sdk)

if(EPONA_PYTHON)
  install(TARGETS _epona LIBRARY DESTINATION epona COMPONENT python EXCLUDE_FROM_ALL)
  if(SKBUILD_SCRIPTS_DIR)
    install(TARGETS epona_cli RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endif()
