// SPDX-License-Identifier: Apache-2.0
// Arguments and warnings; see locked_indexes.hpp.
#include "packager/lock/locked_indexes.hpp"

namespace sealift::packager {

std::vector<std::string> index_words(const LockedIndexes& indexes) {
  std::vector<std::string> words;
  if (!indexes.default_index.empty()) words.insert(words.end(), {"--default-index", indexes.default_index});
  for (const std::string& index : indexes.others) words.insert(words.end(), {"--index", index});
  if (!indexes.strategy.empty()) words.insert(words.end(), {"--index-strategy", indexes.strategy});
  if (!indexes.torch_backend.empty()) words.insert(words.end(), {"--torch-backend", indexes.torch_backend});
  return words;
}

std::vector<std::string> index_warnings(const LockedIndexes& indexes) {
  std::vector<std::string> warnings;
  const auto warn_of_http = [&](const std::string& index) {
    const std::string url = index.substr(index.find("://") == index.npos ? 0 : index.rfind('=', index.find("://")) + 1);
    if (url.starts_with("http://"))
      warnings.push_back("the index " + url +
                         " is asked by plain http: whoever is on the way can answer, and what they "
                         "answer is locked; use https");
  };
  warn_of_http(indexes.default_index);
  for (const std::string& index : indexes.others) warn_of_http(index);
  for (const std::string& line : indexes.in_files) {
    warnings.push_back("a requirements file names an index, which uv asks too: " + line);
    warn_of_http(line.substr(line.find(' ') + 1));
  }
  if (indexes.strategy.starts_with("unsafe-") && !(indexes.others.empty() && indexes.in_files.empty()))
    warnings.push_back("index_strategy \"" + indexes.strategy +
                       "\" takes a package from whichever index offers the "
                       "better version: whoever can publish a name of yours on one of them is packed in its place "
                       "(dependency confusion); first-index has not this fault");
  return warnings;
}

}  // namespace sealift::packager
