// SPDX-License-Identifier: Apache-2.0
// Source: jupyter_client, "Making kernels for Jupyter", kernel specs.
#include "installer/activation/kernel_spec.hpp"

#include "bundle/core/json.hpp"
#include "installer/activation/site_settings.hpp"

namespace sealift::installer {

SmallFiles kernel_spec(const Prefix& prefix, const GenerationRecord& record) {
  std::error_code ignored;
  const std::filesystem::path package = prefix.generation(record.number) / record.site_packages / "ipykernel";
  if (record.site_packages.empty() || !std::filesystem::is_directory(package, ignored)) return {};
  const bundle::Json spec = {
      {"argv",
       {(prefix.current() / record.interpreter).string(), "-m", "ipykernel_launcher", "-f", "{connection_file}"}},
      {"display_name", record.name},
      {"env", variables_of(site_settings(prefix))},
      {"language", "python"},
      {"metadata", {{"debugger", true}}}};
  return {{prefix.kernels() / record.name / "kernel.json", bundle::write_json(spec) + "\n"}};
}

}  // namespace sealift::installer
