# What every one of our own targets is compiled with: link `sealift_build_flags` privately.
add_library(sealift_build_flags INTERFACE)
target_compile_options(sealift_build_flags INTERFACE -Wall -Wextra -Werror
  -Wno-missing-field-initializers  # designated initialisers leave out what keeps its default
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # gcc 12 reports std::string concatenation falsely (its bug 105651)
if(SEALIFT_SANITIZE)
  target_compile_options(sealift_build_flags INTERFACE -fsanitize=${SEALIFT_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(sealift_build_flags INTERFACE -fsanitize=${SEALIFT_SANITIZE})
  # What only calls what is fuzzed needs no counters: they take a quarter of a test's compilation.
  target_compile_options(sealift_build_flags INTERFACE
    $<$<AND:$<BOOL:${SEALIFT_FUZZ}>,$<BOOL:$<TARGET_PROPERTY:SEALIFT_UNCOUNTED>>>:-fno-sanitize=fuzzer-no-link>)
  # gcc 12 sees std::optional in LibTorch's headers as uninitialised once it is instrumented (gcc PR 105562, 80635).
  target_compile_options(sealift_build_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
