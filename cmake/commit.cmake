# cmake -DSOURCE=FOLDER -DVERSION=V -DIN=TEMPLATE -DOUT=FILE -P commit.cmake: OUT is TEMPLATE with Sealift's version and the
# commit that FOLDER has checked out. Run by each build, since a commit needs no configuring; OUT is only written where it
# changes, so that a build of the same commit compiles nothing. "unknown": FOLDER is no git checkout, as an unpacked archive.
set(SEALIFT_VERSION ${VERSION})
set(SEALIFT_COMMIT unknown)
# Empty in a checkout's own root. An archive that was unpacked inside of another project is below that one's.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix
  OUTPUT_VARIABLE prefix RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT failed AND prefix STREQUAL "")
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=-changed
    OUTPUT_VARIABLE commit RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(SEALIFT_COMMIT ${commit})
  endif()
endif()
configure_file(${IN} ${OUT} @ONLY)
