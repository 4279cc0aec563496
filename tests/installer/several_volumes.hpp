// SPDX-License-Identifier: Apache-2.0
// A bundle of six wheels that fills several volumes, for tests of discs.
#pragma once

#include "tests/installer/site.hpp"

namespace sealift::test {

inline constexpr unsigned kSeveralWheels = 6;

// Its wheels are w0 to w5, of which wI has wI/numbers.py, numbers_text(I, 2000). `percent` of recovery data.
inline TinyBundle several_volumes(unsigned percent = 0) {
  TinyBundle tiny{.volume_size = 16384, .recovery = percent};
  tiny.items.clear();
  for (unsigned i = 0; i < kSeveralWheels; ++i) {
    TinyWheel wheel{.name = "w" + std::to_string(i), .files = {}};
    wheel.files[wheel.name + "/numbers.py"] = numbers_text(i, 2000);
    tiny.items.push_back(wheel_item(wheel));
  }
  return tiny;
}

}  // namespace sealift::test
