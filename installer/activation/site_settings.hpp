// SPDX-License-Identifier: Apache-2.0
// PREFIX/site: what the site has beside its bundles, told by the prefix's owner once: a package repository and the
// certificates by which it is known. Activation and virtual environments hand it on to the clients.
#pragma once

#include <string>

#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

struct SiteSettings {
  std::string repository;              // without a slash at its end; empty: there is none
  std::filesystem::path certificates;  // in the prefix, PEM; empty: those of the machine
};

// Without its slash at the end. Throws Usage unless it is a plain http or https URL: with user, password, question,
// fragment, or a character that a shell or a file of settings could take for something else.
std::string parse_repository(const std::string& url);

std::filesystem::path repository_file(const Prefix& prefix);
std::filesystem::path certificates_file(const Prefix& prefix);

// Throws Format for a file that somebody changed.
SiteSettings site_settings(const Prefix& prefix);

// What clients are told by it, under the names that pip, uv, the hubs' clients and OpenSSL read.
bundle::Variables variables_of(const SiteSettings& settings);

}  // namespace sealift::installer
