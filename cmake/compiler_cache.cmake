# With ccache as the launcher (CMAKE_CXX_COMPILER_LAUNCHER), what was compiled before is taken from it, from another
# checkout too. tests/run.sh sets it and its variables where it is there; nothing needs it. No object names the checkout's
# folder: two checkouts of one commit have the same.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
set(sealift_cached_clang "")  # what stands before a clang's name, in words
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  set(cached_clang ${CMAKE_CURRENT_LIST_DIR}/cache_clang.sh ${CMAKE_CXX_COMPILER_LAUNCHER})
  list(JOIN cached_clang " " sealift_cached_clang)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)  # so that it sees which precompiled header was used
  else()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${cached_clang})
  endif()
endif()
