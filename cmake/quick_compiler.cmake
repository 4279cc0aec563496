# sealift_compile_quickly(TARGET): with SEALIFT_QUICK_COMPILER, a clang from 16 on, that clang compiles the target's sources
# in place of gcc, and its precompiled header keeps the templates that LibTorch's headers instantiate: gcc instantiates them
# anew for every unit, which takes it 15 s for an empty main. For what is not shipped: tests, and the samples.
# tests/run.sh does so. CMake knows one compiler a language, so the clang comes as the launcher of the other.
set(SEALIFT_QUICK_COMPILER "" CACHE STRING "A clang that compiles the tests over LibTorch; empty: the project's compiler")
set(sealift_compile_by_clang ${CMAKE_CURRENT_LIST_DIR}/compile_by_clang.sh)
function(sealift_compile_quickly target)
  if(SEALIFT_QUICK_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    string(STRIP "${sealift_cached_clang} ${SEALIFT_QUICK_COMPILER}" by)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${sealift_compile_by_clang};${by}")
  endif()
endfunction()
