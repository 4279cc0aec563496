// SPDX-License-Identifier: Apache-2.0
// The methods' names, as a job file has them.
// See way.hpp.
#include "trainer/plan/way.hpp"

#include <stdexcept>

namespace sealift::trainer::plan {

std::string name_of(Method method) {
  switch (method) {
    case Method::None:
      return "none";
    case Method::Ddp:
      return "ddp";
    case Method::Fsdp:
      return "fsdp";
    case Method::Hsdp:
      return "hsdp";
  }
  throw std::invalid_argument("unknown method");
}

}  // namespace sealift::trainer::plan
