// SPDX-License-Identifier: Apache-2.0
// What doctor prints. People get the first findings of each kind, machines all of them.
// The keys are an interface; README.md lists them.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/doctor/doctor.hpp"

namespace sealift::installer {

bundle::Json json_of(const Checkup& checkup, const DoctorOptions& options);
std::string text_of(const Checkup& checkup, const DoctorOptions& options);

}  // namespace sealift::installer
