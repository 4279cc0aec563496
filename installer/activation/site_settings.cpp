// SPDX-License-Identifier: Apache-2.0
// The URL ends up in files for five shells and in pip.conf, so only characters pass that mean nothing in any of them.
#include "installer/activation/site_settings.hpp"

#include <algorithm>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxUrl = 1000;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:/[]").find(c) != std::string_view::npos;
}

// Why it cannot be used; null when it can.
const char* fault_of(std::string_view url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return "it begins with neither http:// nor https://";
  if (url.size() > kMaxUrl) return "it is longer than 1000 characters";
  if (url.find('@') != url.npos) return "it names a user: what is written here can be read by all";
  if (!std::all_of(url.begin(), url.end(), is_plain)) return "it has other characters than A-Z a-z 0-9 -._~:/[]";
  const std::string_view host = url.substr(scheme, std::min(url.find('/', scheme), url.size()) - scheme);
  return host.empty() || host.front() == ':' ? "it names no host" : nullptr;
}

}  // namespace

fs::path repository_file(const Prefix& prefix) {
  return prefix.site() / "repository";
}

fs::path certificates_file(const Prefix& prefix) {
  return prefix.site() / "certificates.pem";
}

std::string parse_repository(const std::string& url) {
  if (const char* const fault = fault_of(url))
    throw Error(ErrorCode::Usage, {.what = std::string("this cannot be the address of a repository: ") + fault,
                                   .where = bundle::SafePath::printable(url),
                                   .expected = "a URL such as https://packages.site:8443/env"});
  std::string parsed = url;
  while (parsed.ends_with('/')) parsed.pop_back();
  return parsed;
}

SiteSettings site_settings(const Prefix& prefix) {
  SiteSettings settings;
  std::error_code ignored;
  if (!fs::exists(repository_file(prefix), ignored)) return settings;
  std::string line = bundle::read_text(repository_file(prefix), kMaxUrl + 1);
  if (line.ends_with('\n')) line.pop_back();
  if (const char* const fault = fault_of(line))
    throw Error(ErrorCode::Format, {.what = std::string("the remembered repository cannot be used: ") + fault,
                                    .where = repository_file(prefix).string(),
                                    .next = "sealift-install site repository URL writes it anew"});
  settings.repository = std::move(line);
  if (fs::exists(certificates_file(prefix), ignored)) settings.certificates = certificates_file(prefix);
  return settings;
}

bundle::Variables variables_of(const SiteSettings& settings) {
  if (settings.repository.empty()) return {};
  const std::string& url = settings.repository;
  bundle::Variables variables = {{"PIP_INDEX_URL", url + "/simple/"},
                                 {"UV_DEFAULT_INDEX", url + "/simple/"},
                                 {"HF_ENDPOINT", url},
                                 {"MODELSCOPE_ENDPOINT", url}};
  if (!settings.certificates.empty())
    for (const char* name : {"PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"})
      variables[name] = settings.certificates.string();
  return variables;
}

}  // namespace sealift::installer
