// SPDX-License-Identifier: Apache-2.0
// What the driver says of each GPU of this host, by NVML.
// Measured by machine.gpus.
// The library comes with the driver, so it is loaded while running: one program for machines with and without GPUs.
#pragma once

#include "verify/verdict/json.hpp"

#include <string>

namespace sealift::verify {

/// {"driver": text, "devices": [{"index", "name", "uuid", "ecc_volatile", "ecc_aggregate" (uncorrected errors),
/// "rows_pending", "rows_failed", "rows_remapped", "sm_mhz", "sm_max_mhz", "temperature", "throttle" (NVML's bits),
/// "pcie_generation", "pcie_max_generation", "pcie_width", "pcie_max_width", "nvlinks", "nvlinks_active"}, …]}. A key
/// that a device does not support is left out. Throws NotRun where there is no such library or no driver,
/// std::runtime_error where a device that is listed does not answer.
nlohmann::json read_gpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace sealift::verify
