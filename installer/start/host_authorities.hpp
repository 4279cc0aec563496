// SPDX-License-Identifier: Apache-2.0
// Where systems keep the certificate authorities that they trust, in one file. A carried OpenSSL looks where its own
// distribution has them; preflight and sealift-start look in all of these.
#pragma once

#include <string_view>

namespace sealift::installer {

inline constexpr std::string_view kAuthorities[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // EL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // EL
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/var/lib/ca-certificates/ca-bundle.pem",             // SUSE
    "/etc/ssl/cert.pem",                                  // Alpine
};

}  // namespace sealift::installer
