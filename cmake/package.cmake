# `cmake --install` and `find_package(sealift)`: headers, the library sealift::bundle, the
# header-only sealift::train and the module that finds LibTorch.
include(CMakePackageConfigHelpers)
set(SEALIFT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sealift)
install(TARGETS sealift_bundle EXPORT sealift COMPONENT headers)
# In a file of its own, since a bundle carries the core alone ([sdk]). Such a file includes all that begin with its name
# and a hyphen, so none is called sealift.cmake.
if(TARGET sealift_train)
  install(TARGETS sealift_train EXPORT sealift-train COMPONENT headers)
  install(EXPORT sealift-train FILE sealift_train.cmake NAMESPACE sealift:: DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
  if(TARGET sealift_train_cuda)  # apart: who has none of CUDA's headers can still use the rest
    install(TARGETS sealift_train_cuda EXPORT sealift-train-cuda COMPONENT headers)
    install(EXPORT sealift-train-cuda FILE sealift_train_cuda.cmake NAMESPACE sealift:: DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
  endif()
endif()
install(DIRECTORY include/sealift TYPE INCLUDE COMPONENT headers
  PATTERN CMakeLists.txt EXCLUDE PATTERN toml.hpp EXCLUDE PATTERN nearest.hpp EXCLUDE
  PATTERN saved_wrapper.hpp EXCLUDE)  # the three are for our own programs
install(EXPORT sealift FILE sealift_bundle.cmake NAMESPACE sealift:: DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
# What names folders of this machine is apart, so that the rest can travel.
get_filename_component(SEALIFT_ISAL_FOLDER "${SEALIFT_ISAL_LIBRARY}" DIRECTORY)
configure_file(cmake/sealift-built.cmake.in ${PROJECT_BINARY_DIR}/sealift-built.cmake @ONLY)
configure_package_config_file(cmake/sealift-config.cmake.in ${PROJECT_BINARY_DIR}/sealift-config.cmake
  INSTALL_DESTINATION ${SEALIFT_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sealift-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sealift-config.cmake ${PROJECT_BINARY_DIR}/sealift-config-version.cmake
              ${PROJECT_BINARY_DIR}/sealift-built.cmake cmake/FindLibTorch.cmake
        DESTINATION ${SEALIFT_PACKAGE_DIR} COMPONENT headers)
install(FILES LICENSE DESTINATION share/doc/sealift COMPONENT headers)
