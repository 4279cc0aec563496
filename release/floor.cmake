# sealift_floor(OUT PROGRAM): the oldest glibc that PROGRAM, a dynamic one, starts with; for one that takes libstdc++ from
# the system, the oldest that Python's tags know beside that libstdc++ (PEP 600, and auditwheel's list of libraries).
function(sealift_floor out program)
  file(STRINGS ${program} versions REGEX "^GLIBC_2\\.[0-9]+")
  list(TRANSFORM versions REPLACE "^GLIBC_(2\\.[0-9]+).*" "\\1")
  file(STRINGS ${program} of_gcc_12 REGEX "^GLIBCXX_3\\.4\\.30$")
  if(of_gcc_12)
    list(APPEND versions 2.35)
  endif()
  list(SORT versions COMPARE NATURAL)
  list(POP_BACK versions newest)
  set(${out} ${newest} PARENT_SCOPE)
endfunction()
