// SPDX-License-Identifier: Apache-2.0
// Whatever section table and fat binaries point at, reading them ends, and what was read can be written and read again.
#include "sealift/bundle/native/gpu_code.hpp"

#include "sealift/bundle/native/gpu_models.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  gpu_capability(text.substr(0, 200));
  accepted([&] {
    MemorySource source = source_of(text, "elf");
    const GpuCode code = read_gpu_code(source);
    must(code.count() <= text.size() / 16, "each fat binary takes its header");
    for (const auto& [images, times] : code.binaries) {
      must(!images.empty() && times > 0, "a fat binary has images");
      must(parse_gpu_images(text_of(images)) == images, "images are read as they are written");
    }
    must(code.count_on(90) <= code.count(), "a part is not more than all");
  });
}
