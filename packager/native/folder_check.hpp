// SPDX-License-Identifier: Apache-2.0
// Whose the folders are in which ld.so searches: one owner each, and of one library name one file in the folders of one
// file's search. Otherwise a wheel decides what another one's code is loaded with, and nobody sees it. Also the parts
// of a search path that lead out of the environment, or to wherever a program is started. Pure.
#pragma once

#include <string>

#include "packager/native/native_finding.hpp"
#include "packager/native/native_walk.hpp"

namespace sealift::packager {

// Folders with libraries of several packages, of a package whose they are not, and two files of one name in the folders
// that one file searches. NVIDIA's packages, known by their projects' names, share theirs. `interpreter` is the path of
// the program that imports libraries: what its search path says counts for all of them.
NativeFindings folder_findings(const NativeIndex& index, const std::string& interpreter);

// Parts of RPATH and RUNPATH that are empty, relative or below /proc: a Refusal, where something is looked for there; a
// Warning in a file that only code of its package's could load by name. Absolute ones are a Warning. Of `walk`, who is
// needed by others.
NativeFindings search_path_findings(const NativeIndex& index, const NativeWalk& walk);

}  // namespace sealift::packager
