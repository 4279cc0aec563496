// SPDX-License-Identifier: Apache-2.0
// Reads --hash=… of requirements files; see requirement_hashes.hpp. Format: pip's "Requirements File Format".
#include "packager/resolve/requirement_hashes.hpp"

#include "bundle/core/text_parts.hpp"
#include "packager/host/http_logins.hpp"
#include "packager/host/url.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr int kMaxDepth = 20;  // of files that include each other

void read(const fs::path& file, int depth, RequirementHashes& out) {
  if (depth > kMaxDepth)
    throw Error(ErrorCode::Usage,
                {.what = "requirements files include each other without end", .where = file.string()});
  for (const std::string& line : requirement_lines(bundle::read_text(file, std::uint64_t{64} << 20))) {
    for (const char* option : {"-r", "--requirement"})
      if (const std::string other = option_value(line, option); !other.empty() && other.find("://") == other.npos)
        read(file.parent_path() / with_variables(other), depth + 1, out);
    static constexpr std::string_view kHash = "--hash";
    std::size_t at = line.find(std::string(" ") + std::string(kHash));
    if (line[0] == '-' || at == line.npos) continue;
    const std::string name = bundle::normalized_project_name(line.substr(0, line.find_first_of(" \t[<>=!~;@(")));
    bool sha256 = false;
    for (; at != line.npos; at = line.find(kHash, at + 1)) {
      const std::size_t begin = line.find_first_not_of(" \t=", line.find(kHash, at) + kHash.size());
      if (begin == line.npos) break;
      const std::string hash = line.substr(begin, line.find_first_of(" \t", begin) - begin);
      const std::optional<Digest> digest =
          hash.starts_with("sha256:") ? Digest::from_hex(std::string_view(hash).substr(7)) : std::nullopt;
      if (digest) out[name].insert(*digest);
      sha256 = sha256 || digest;
    }
    if (!sha256)
      throw Error(ErrorCode::Format, {.what = "a requirement has hashes, but none that can be checked",
                                      .where = file.string() + ", " + name,
                                      .expected = "--hash=sha256: and 64 lower-case hexadecimal digits"});
  }
}

void find_index_options(const fs::path& file, int depth, std::vector<IndexOption>& out) {
  if (depth > kMaxDepth) return;  // `read` refuses it
  for (const std::string& line : requirement_lines(bundle::read_text(file, std::uint64_t{64} << 20))) {
    for (const char* option : {"-r", "--requirement", "-c", "--constraint"})
      if (const std::string other = option_value(line, option); !other.empty() && other.find("://") == other.npos)
        find_index_options(file.parent_path() / with_variables(other), depth + 1, out);
    for (const char* option : {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"})
      if (const std::string index = option_value(line, option); !index.empty())
        out.push_back({.option = option, .value = index, .folder = file.parent_path()});
  }
}

}  // namespace

std::string option_value(const std::string& line, std::string_view option) {
  if (!line.starts_with(option) || line.starts_with("--require-hashes")) return {};
  std::string rest = line.substr(option.size());
  if (option.starts_with("--") && !rest.empty() && rest[0] != '=' && rest[0] != ' ' && rest[0] != '\t') return {};
  if (!rest.empty() && rest[0] == '=') rest.erase(0, 1);
  return std::string(bundle::trimmed(rest));
}

std::vector<IndexOption> index_options_of(const fs::path& file) {
  std::vector<IndexOption> out;
  find_index_options(file, 0, out);
  return out;
}

std::vector<std::string> index_lines(const fs::path& file) {
  std::vector<std::string> out;
  for (const IndexOption& one : index_options_of(file))
    out.push_back(one.option + " " + without_credentials(one.value));
  return out;
}

std::vector<std::string> requirement_lines(std::string_view text) {
  std::vector<std::string> out;
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string piece(bundle::trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
    // A comment begins a line or follows a space; "#egg=" in a URL is not one.
    if (const std::size_t at = piece.starts_with('#') ? 0 : piece.find(" #"); at != piece.npos)
      piece = std::string(bundle::trimmed(std::string_view(piece).substr(0, at)));
    const bool goes_on = piece.ends_with('\\');
    if (goes_on) piece = std::string(bundle::trimmed(std::string_view(piece).substr(0, piece.size() - 1)));
    line += (line.empty() || piece.empty() ? "" : " ") + piece;
    if (goes_on && begin < text.size()) continue;
    if (!line.empty()) out.push_back(std::move(line));
    line.clear();
  }
  return out;
}

RequirementHashes read_requirement_hashes(const fs::path& file) {
  RequirementHashes out;
  read(file, 0, out);
  return out;
}

}  // namespace sealift::packager
