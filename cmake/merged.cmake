# sealift_merge(TARGET): with SEALIFT_MERGE, the target's sources are compiled six at a time. Half of what a source that
# includes LibTorch costs are templates of its headers, which every unit instantiates anew. tests/run.sh does so; all
# other builds show what a source takes from its neighbour.
option(SEALIFT_MERGE "Compile several sources as one unit where LibTorch's headers cost more than they do" OFF)
function(sealift_merge target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SEALIFT_MERGE} UNITY_BUILD_BATCH_SIZE 6)
endfunction()
