// SPDX-License-Identifier: Apache-2.0
// Filters both formats of sources.list(5); see apt_sources.hpp. Entries are kept as they were written, with keys and
// options, because apt itself checks them.
#include "packager/debian/apt_sources.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxSourcesFile = std::uint64_t{1} << 20;

class Filter {
 public:
  explicit Filter(std::string suite) : suite_(std::move(suite)) {}

  // "deb [OPTIONS] ADDRESS SUITE COMPONENT..."; options may hold spaces.
  void one_line_file(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string type, address, suite;
      if (!(words >> type >> address) || type != "deb") continue;
      if (address.front() == '[') {
        while (address.back() != ']' && words >> address) continue;
        if (!(words >> address)) continue;
      }
      if (words >> suite && is_wanted(suite)) found_.lines += line + "\n";
    }
  }

  // Stanzas of "Field: value", separated by empty lines; a line that begins with a space continues a value.
  void stanza_file(const std::string& text) {
    std::istringstream lines(text);
    std::vector<std::string> stanza;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      if (line.find_first_not_of(" \t\r") != line.npos) {
        stanza.push_back(line);
      } else {
        end(stanza);
      }
    }
    end(stanza);
  }

  AptSources take() { return std::move(found_); }

 private:
  bool is_wanted(const std::string& suite) {
    found_.suites.insert(suite);
    return suite == suite_ || suite == suite_ + "-updates" || suite == suite_ + "-security";
  }

  void end(std::vector<std::string>& stanza) {
    std::string kept, wanted;
    for (std::size_t i = 0; i < stanza.size(); ++i) {
      std::string field = stanza[i].substr(0, stanza[i].find(':'));
      std::transform(field.begin(), field.end(), field.begin(), [](unsigned char c) { return std::tolower(c); });
      if (field != "suites") {
        kept += stanza[i] + "\n";
        continue;
      }
      std::string value = stanza[i].substr(field.size() + 1);
      while (i + 1 < stanza.size() && (stanza[i + 1].front() == ' ' || stanza[i + 1].front() == '\t'))
        value += stanza[++i];
      std::istringstream words(value);
      for (std::string suite; words >> suite;)
        if (is_wanted(suite)) wanted += " " + suite;
    }
    if (!wanted.empty()) found_.stanzas += kept + "Suites:" + wanted + "\n\n";
    stanza.clear();
  }

  std::string suite_;
  AptSources found_;
};

}  // namespace

AptSources find_apt_sources(const fs::path& folder, const std::string& suite) {
  Filter filter(suite);
  std::error_code none;
  if (fs::is_regular_file(folder / "sources.list", none))
    filter.one_line_file(bundle::read_text(fs::canonical(folder / "sources.list"), kMaxSourcesFile));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "sources.list.d", none))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (file.extension() == ".list") filter.one_line_file(bundle::read_text(fs::canonical(file), kMaxSourcesFile));
    if (file.extension() == ".sources") filter.stanza_file(bundle::read_text(fs::canonical(file), kMaxSourcesFile));
  }
  return filter.take();
}

}  // namespace sealift::packager
