// SPDX-License-Identifier: Apache-2.0
// The names of what happens in a step.
// See step.hpp.
#include "trainer/simulate/step.hpp"

#include <array>

namespace sealift::trainer {

const char* to_string(StepActivity activity) {
  constexpr std::array names = {"forward",  "backward",         "gather",          "gather wait",
                                "reduce",   "reduce wait",      "sum over copies", "copy in",
                                "copy out", "small collective", "optimizer"};
  return names[static_cast<std::size_t>(activity)];
}

const char* to_string(Stream stream) {
  constexpr std::array names = {"compute", "gather", "reduce", "sum over copies", "bus"};
  return names[static_cast<std::size_t>(stream)];
}

std::string name_of(const StepShape& shape, const StepEvent& event) {
  if (event.what == StepActivity::Optimizer || event.what == StepActivity::SmallCollective) return "";
  if (event.bucket) return "bucket " + std::to_string(event.unit);
  const auto& name = shape.units.at(event.unit).name;
  if (!name.empty()) return name;
  return event.unit == 0 ? "root" : std::to_string(event.unit);
}

}  // namespace sealift::trainer
