# sealift_merge(TARGET [SOURCES]): with SEALIFT_MERGE, the target's sources are compiled several at a time, twelve unless
# SOURCES says another number. Most of what a source costs are the headers that it includes, and the templates in them,
# which every unit instantiates anew. tests/run.sh and the preset `tools` do so; all other builds show what a source takes
# from its neighbour.
option(SEALIFT_MERGE "Compile several sources as one unit" OFF)
function(sealift_merge target)
  set(sources 12)
  if(ARGC GREATER 1)
    set(sources ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SEALIFT_MERGE} UNITY_BUILD_BATCH_SIZE ${sources})
  if(SEALIFT_MERGE)  # what a source of a batch keeps to itself looks to gcc as if a header had it
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
