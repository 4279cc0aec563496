// SPDX-License-Identifier: Apache-2.0
// Lines, files and projects; see input_logins.hpp.
#include "packager/resolve/input_logins.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "packager/host/http_logins.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;
constexpr int kMostIncluded = 1000;  // requirements files
constexpr int kMostNested = 20;

// What `option` names, as seen from the file itself.
std::string as_absolute(const fs::path& file, const std::string& named) {
  return named.find("://") == named.npos ? fs::absolute(file.parent_path() / named).lexically_normal().string() : named;
}

// "NAME[extra] @ git+https://…" of "git+https://…#egg=NAME[extra]", as pip's files have it. uv takes that too, but goes
// by the project's table then, also where a wheel of it was seen to require something else.
std::string with_name(const std::string& line) {
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::size_t hash = line.find('#');
  if (!line.starts_with("git+") || hash >= end) return line;
  std::string name, fragment;
  for (const std::string_view part : bundle::split(std::string_view(line).substr(hash + 1, end - hash - 1), '&'))
    if (part.starts_with("egg="))
      name = part.substr(4);
    else
      fragment += (fragment.empty() ? "#" : "&") + std::string(part);
  return name.empty() ? line : name + " @ " + line.substr(0, hash) + fragment + line.substr(end);
}

// Without the "-e" that pip takes before a repository, and uv refuses: what is installed is a wheel in any case.
std::string as_requirement(const std::string& line) {
  for (const std::string option : {"-e", "--editable"})
    if (const std::string source = option_value(line, option); source.starts_with("git+")) return with_name(source);
  return with_name(line);
}

// Copies of a file and of all that it includes; uv takes other relative paths in them from the job's folder.
class Copies {
 public:
  Copies(const fs::path& scratch, GitLogins& logins) : scratch_(scratch), logins_(logins) {}

  // The copy; `clean` becomes false when a login was in it.
  fs::path copy(const fs::path& file, int depth, bool& clean) {
    if (depth > kMostNested || ++count_ > kMostIncluded)
      throw Error(ErrorCode::Usage,
                  {.what = "requirements files include each other without end", .where = file.string()});
    const int number = count_;
    std::string text;
    for (const std::string& line : requirement_lines(bundle::read_text(file, kMostText))) {
      const std::string kept = logins_.take(as_requirement(line), file.string());
      clean = clean && kept == line;
      text += with_copies(kept, file, depth, clean) + "\n";
    }
    const fs::path to = scratch_ / ("included-" + std::to_string(number) + ".txt");
    bundle::write_text(to, text);
    return to;
  }

 private:
  std::string with_copies(const std::string& line, const fs::path& file, int depth, bool& clean) {
    for (const std::string option : {"-r", "--requirement", "-c", "--constraint"})
      if (const std::string other = option_value(line, option); !other.empty()) {
        if (other.find("://") != other.npos) return line;
        return option + " " + copy(file.parent_path() / with_variables(other), depth + 1, clean).string();
      }
    for (const std::string option : {"-f", "--find-links"})
      if (const std::string links = option_value(line, option); !links.empty())
        return option + " " + as_absolute(file, with_variables(links));
    return line;
  }

  fs::path scratch_;
  GitLogins& logins_;
  int count_ = 0;
};

}  // namespace

std::vector<std::string> lines_without_logins(const std::vector<std::string>& lines, const std::string& where,
                                              GitLogins& logins) {
  std::vector<std::string> out;
  for (const std::string& line : lines) out.push_back(logins.take(as_requirement(line), where));
  return out;
}

void refuse_logins_in(const fs::path& pyproject) {
  const std::string text = bundle::read_text(pyproject, kMostText);
  GitLogins found;
  found.take(text, pyproject.string());
  std::string plain = text;  // [tool.uv.sources]: git = "https://…"
  for (std::size_t at = plain.find("git"); at != plain.npos; at = plain.find("git", at + 3)) {
    const std::size_t equals = plain.find_first_not_of(" \t\"'", at + 3);
    const std::size_t begin = equals == plain.npos ? equals : plain.find_first_not_of(" \t\"'", equals + 1);
    if (begin != plain.npos && plain[equals] == '=' && plain.compare(begin, 4, "http") == 0)
      plain.insert(begin, "git+");
  }
  found.take(plain, pyproject.string());
  if (found.empty()) return;
  throw Error(ErrorCode::Usage,
              {.what = "the address of a repository in a project holds a login, which uv would show to every user",
               .where = pyproject.string(),
               .expected = "addresses without a login in [project] and [tool.uv.sources]",
               .next = "give the login to git's own credential helper, or write the repository with its login into "
                       "[python].requirements of the job"});
}

fs::path file_without_logins(const fs::path& file, const fs::path& scratch, GitLogins& logins) {
  bool clean = true;
  const fs::path copy = Copies(scratch, logins).copy(file, 0, clean);
  return clean ? file : copy;
}

}  // namespace sealift::packager
