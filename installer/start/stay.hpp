// SPDX-License-Identifier: Apache-2.0
// Keeps a program, and what it starts, in the generation in which it was started: `current` may lead elsewhere a moment
// later, and a job whose modules, workers or ranks come from two generations is wrong without a word. First step of
// sealift-start, before any variable is set.
#pragma once

#include <climits>

namespace sealift::installer {

// The environment that a program belongs to, its links resolved once.
struct OwnPlace {
  char root[PATH_MAX];     // PREFIX/generations/NNNN
  char bin[PATH_MAX + 8];  // its bin/
};

// Of the environment whose libexec is `libexec`; false, with errno, when there is none.
bool find_own_place(const char* libexec, OwnPlace& place);

// Whether a program of this name is the interpreter.
bool is_python(const char* name);

// Names the generation's own folder wherever PATH and argv[0] name it through links. Python looks for its modules
// beside argv[0], so its argv[0] always becomes the generation's, unless it lies in a virtual environment.
void stay_in(const OwnPlace& place, const char* name, int argc, char** argv);

}  // namespace sealift::installer
