// SPDX-License-Identifier: Apache-2.0
// With link_two.cpp: every header in two units of one program, so nothing in them is defined twice.
#include "sealift/bundle.hpp"

std::string other_unit();

int main() {
  return other_unit() == sealift::bundle::sha256({}).hex() ? 0 : 1;
}
