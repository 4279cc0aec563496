// SPDX-License-Identifier: Apache-2.0
// The second unit of the link test.
#include "sealift/bundle.hpp"

std::string other_unit() {
  return sealift::bundle::sha256({}).hex();
}
