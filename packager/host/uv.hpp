// SPDX-License-Identifier: Apache-2.0
// uv as every step calls it: it fetches no Python, and trusts the certificates that our own downloads trust, which are
// the system's unless a variable names others. uv's own list does not know the authority of a network that intercepts
// TLS.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "packager/host/process.hpp"
#include "packager/host/trusted_certificates.hpp"

namespace sealift::packager {

// The first word is the program itself. Proxies are uv's own to read from the environment.
inline ProcessResult run_uv(const std::vector<std::string>& command) {
  std::map<std::string, std::string> environment = {{"UV_PYTHON_DOWNLOADS", "never"},
                                                    {"NO_COLOR", "1"},
                                                    {"UV_SYSTEM_CERTS", "1"},
                                                    {"UV_NATIVE_TLS", "1"}};  // the name in older versions
  if (const std::string file = trusted_certificates(); !file.empty()) environment["SSL_CERT_FILE"] = file;
  return run_process(command, environment);
}

}  // namespace sealift::packager
