// SPDX-License-Identifier: Apache-2.0
// Which file of certificates the site wants trusted: libcurl, uv and apt each know other names of the same setting.
#pragma once

#include <cstdlib>
#include <string>

namespace sealift::packager {

// The first that is set of CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE; empty: the system's own.
inline std::string trusted_certificates() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"})
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') return file;
  return {};
}

}  // namespace sealift::packager
