// SPDX-License-Identifier: Apache-2.0
// Which file of a library this process has loaded.
#pragma once

#include <string>

namespace sealift::trainer {

/// The path of the first loaded library whose file name begins with `name` ("libcudnn.so"); empty: none.
std::string loaded_library(const std::string& name);

}  // namespace sealift::trainer
