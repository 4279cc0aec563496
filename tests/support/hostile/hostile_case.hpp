// SPDX-License-Identifier: Apache-2.0
// One hostile input as a value. The families beside this header make them; tests, fuzz seeds and the comparison with
// other archivers all take them from here, so there is one corpus. tests/HOSTILE.md says what each row is about.
#pragma once

#include <string>
#include <vector>

#include "sealift/bundle/core/error.hpp"

namespace sealift::test {

struct HostileCase {
  std::string row;   // of tests/HOSTILE.md, such as A02
  std::string name;  // the one fault, fit for a file name
  std::string bytes;
  bundle::ErrorCode code = bundle::ErrorCode::Format;
  std::string word;               // what the message must hold besides the file's name
  std::string file = "the-file";  // the name it is read under
};

using HostileCases = std::vector<HostileCase>;

}  // namespace sealift::test
