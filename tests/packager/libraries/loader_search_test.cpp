// SPDX-License-Identifier: Apache-2.0
// The folders that ld.so would look in, and in which order.
#include "packager/libraries/loader_search.hpp"

#include <doctest/doctest.h>

using namespace sealift::packager;
using sealift::bundle::ElfFile;
using Folders = std::vector<std::string>;

TEST_CASE("search paths are relative to the object that says them, in both spellings") {
  CHECK(expand_search_path("$ORIGIN/../../nvidia/cu13/lib:${ORIGIN}", "site/torch/lib", "x86_64") ==
        Folders{"site/nvidia/cu13/lib", "site/torch/lib"});
  CHECK(expand_search_path("/opt/lib/:/opt/lib:", "x", "x86_64") == Folders{"/opt/lib"});
  CHECK(expand_search_path("", "x", "x86_64").empty());
  CHECK(expand_search_path("::", "x", "x86_64").empty());  // the current folder, wherever that is
}

TEST_CASE("the words for a platform's folders stand for what distributions mean by them") {
  CHECK(expand_search_path("/a/$LIB", "x", "x86_64") == Folders{"/a/lib64", "/a/lib/x86_64-linux-gnu", "/a/lib"});
  CHECK(expand_search_path("$ORIGIN/${PLATFORM}", "x", "aarch64") == Folders{"x/aarch64"});
}

TEST_CASE("an old search path serves what its object loads, up to the program") {
  ElfFile library, middle, program;
  library.rpath = "$ORIGIN/own";
  middle.rpath = "$ORIGIN";
  program.rpath = "$ORIGIN/../lib";
  const std::vector<LoadedObject> chain = {{&library, "a"}, {&middle, "b"}, {&program, "libexec"}};
  CHECK(search_folders(chain, "x86_64") == Folders{"a/own", "b", "lib"});
}

TEST_CASE("what the linker was told to search comes behind old search paths and before new ones") {
  ElfFile old_one, new_one, program;
  program.rpath = "$ORIGIN/../lib";
  old_one.rpath = "$ORIGIN";
  new_one.runpath = "$ORIGIN";
  const Folders told = {"told"};
  CHECK(search_folders(std::vector<LoadedObject>{{&old_one, "a"}, {&program, "libexec"}}, "x86_64", told) ==
        Folders{"a", "lib", "told"});
  CHECK(search_folders(std::vector<LoadedObject>{{&new_one, "a"}, {&program, "libexec"}}, "x86_64", told) ==
        Folders{"told", "a"});
}

TEST_CASE("a new search path serves its own object only, and switches off the old ones of all others") {
  ElfFile library, program;
  program.rpath = "$ORIGIN/../lib";
  library.runpath = "$ORIGIN";
  library.rpath = "$ORIGIN/ignored";
  CHECK(search_folders(std::vector<LoadedObject>{{&library, "a"}, {&program, "libexec"}}, "x86_64") == Folders{"a"});

  // What that library loads has no search path of its own, and takes over nothing from it.
  ElfFile inner;
  CHECK(search_folders(std::vector<LoadedObject>{{&inner, "c"}, {&library, "a"}, {&program, "libexec"}}, "x86_64") ==
        Folders{"lib"});
}
