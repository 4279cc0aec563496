# `cmake --install` and `find_package(sealift)`: headers, the library sealift::bundle, the
# header-only sealift::train and the module that finds LibTorch.
include(CMakePackageConfigHelpers)
set(SEALIFT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sealift)
set(SEALIFT_TARGETS sealift_bundle)
set(SEALIFT_HAS_TRAIN OFF)
if(TARGET sealift_train)
  list(APPEND SEALIFT_TARGETS sealift_train)
  set(SEALIFT_HAS_TRAIN ON)
endif()
if(TARGET sealift_train_cuda)
  list(APPEND SEALIFT_TARGETS sealift_train_cuda)
endif()
install(TARGETS ${SEALIFT_TARGETS} EXPORT sealift COMPONENT headers)
install(DIRECTORY include/sealift TYPE INCLUDE COMPONENT headers
  PATTERN CMakeLists.txt EXCLUDE PATTERN toml.hpp EXCLUDE)  # toml.hpp is for our own programs
install(EXPORT sealift NAMESPACE sealift:: DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
# Distributions have no static ISA-L, so the package looks where it was built with one.
get_filename_component(SEALIFT_ISAL_FOLDER "${SEALIFT_ISAL_LIBRARY}" DIRECTORY)
configure_package_config_file(cmake/sealift-config.cmake.in ${PROJECT_BINARY_DIR}/sealift-config.cmake
  INSTALL_DESTINATION ${SEALIFT_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sealift-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sealift-config.cmake ${PROJECT_BINARY_DIR}/sealift-config-version.cmake
              cmake/FindLibTorch.cmake DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
