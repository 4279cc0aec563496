# sealift_precompile(TARGET [HEADERS...]): with SEALIFT_PRECOMPILE, the standard headers that most sources include are
# parsed once for the target. The preset `tools` does so, for a first build; all others show what a source forgot to include.
option(SEALIFT_PRECOMPILE "Precompile the standard headers of the bundle half" OFF)
function(sealift_precompile target)
  if(NOT SEALIFT_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <string> <string_view> <thread> <utility> <vector>
    ${ARGN})
  # gcc 12 forgets that what it precompiled are system headers, and reports std::string's copying falsely there.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds;-Wno-maybe-uninitialized>)
endfunction()
