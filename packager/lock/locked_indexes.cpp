// SPDX-License-Identifier: Apache-2.0
// Arguments and warnings; see locked_indexes.hpp.
#include "packager/lock/locked_indexes.hpp"

#include <cstdlib>
#include <string_view>

#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace {

constexpr std::uint64_t kMostLoginFile = std::uint64_t{64} << 20;

}  // namespace

std::vector<std::string> index_words(const LockedIndexes& indexes) {
  std::vector<std::string> words;
  if (!indexes.default_index.empty()) words.insert(words.end(), {"--default-index", indexes.default_index});
  for (const std::string& index : indexes.others) words.insert(words.end(), {"--index", index});
  if (!indexes.strategy.empty()) words.insert(words.end(), {"--index-strategy", indexes.strategy});
  if (!indexes.torch_backend.empty()) words.insert(words.end(), {"--torch-backend", indexes.torch_backend});
  return words;
}

HttpLogins index_logins(const LockedIndexes& indexes) {
  HttpLogins logins;
  for (const std::filesystem::path& file : indexes.login_files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    const std::string text = bundle::read_text(file, kMostLoginFile);
    for (const std::string_view line : bundle::split(text, '\n'))
      if (!bundle::trimmed(line).starts_with('#')) logins.take(with_variables(std::string(line)));
  }
  if (const char* const set = std::getenv("UV_DEFAULT_INDEX")) logins.add_index(set);
  logins.add_index(indexes.default_index);
  for (const std::string& index : indexes.others) logins.add_index(index);
  for (const std::string& option : indexes.in_files)
    logins.add_index(with_variables(option.substr(option.find(' ') + 1)));
  for (const std::string& address : indexes.variable_addresses) logins.add_variable_address(address);
  return logins;
}

std::vector<std::string> index_warnings(const LockedIndexes& indexes) {
  std::vector<std::string> warnings;
  const auto warn_of_http = [&](const std::string& index) {
    const std::string url = index.substr(index.rfind('=', index.find("://")) + 1);
    if (url.starts_with("http://"))
      warnings.push_back("the index " + url +
                         " is asked by plain http: anybody on the way can answer, and their "
                         "answer is locked; use https");
  };
  warn_of_http(indexes.default_index);
  for (const std::string& index : indexes.others) warn_of_http(index);
  for (const std::string& line : indexes.in_files) {
    warnings.push_back("a requirements file or a lock names an index, which uv asks too: " + line);
    warn_of_http(line.substr(line.find(' ') + 1));
  }
  if (indexes.strategy.starts_with("unsafe-") && !(indexes.others.empty() && indexes.in_files.empty()))
    warnings.push_back("index_strategy \"" + indexes.strategy +
                       "\" takes a package from whichever index offers the "
                       "better version: a package that a stranger publishes there under a name of yours is packed "
                       "(dependency confusion); first-index avoids this");
  return warnings;
}

}  // namespace sealift::packager
