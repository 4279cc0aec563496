# sealift_takes_older_clone(TARGET): a static program whose threads start under an older container runtime, too
# (bundle/host/older_clone.cpp). Only where the static C library has the call that is wrapped.
include(CheckCXXSourceCompiles)
file(READ ${PROJECT_SOURCE_DIR}/bundle/host/older_clone.cpp older_clone)
set(CMAKE_REQUIRED_LINK_OPTIONS -static LINKER:--wrap=__clone3)
check_cxx_source_compiles("#include <thread>\n${older_clone}\nint main() { std::thread([] {}).join(); }" SEALIFT_HAS_CLONE3)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

function(sealift_takes_older_clone target)
  if(SEALIFT_HAS_CLONE3)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/bundle/host/older_clone.cpp)
    target_link_options(${target} PRIVATE LINKER:--wrap=__clone3)
  endif()
endfunction()
