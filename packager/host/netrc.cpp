// SPDX-License-Identifier: Apache-2.0
// Words, and what follows them; see netrc.hpp. The first entry of a host counts.
#include "packager/host/netrc.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "packager/host/own_variables.hpp"
#include "packager/host/url.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace {

constexpr std::uint64_t kMostNetrc = std::uint64_t{1} << 20;

class NetrcWords {
 public:
  explicit NetrcWords(std::string_view text) : text_(text) {}

  // False at the end. A word may be quoted, and then hold spaces.
  bool next(std::string& word) {
    word.clear();
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    if (at_ == text_.size()) return false;
    const bool quoted = text_[at_] == '"';
    for (at_ += quoted ? 1 : 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted ? c == '"' : c == ' ' || c == '\t' || c == '\r' || c == '\n') break;
      if (quoted && c == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_];
    }
    at_ = std::min(at_ + 1, text_.size());
    return true;
  }
  // The rest of a comment, or of a macro, which ends with an empty line.
  void skip_to(std::string_view end) {
    at_ = at_ > 0 && text_[at_ - 1] == '\n' && end.size() == 1 ? at_ : std::min(text_.find(end, at_), text_.size());
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<HttpLogin> login_in_netrc(std::string_view text, std::string_view host) {
  std::optional<HttpLogin> of_host, of_any, unused;
  std::optional<HttpLogin>* into = &unused;
  NetrcWords words(text);
  for (std::string word, value; words.next(word);) {
    if (word == "default") {
      into = of_any ? &unused : &of_any;
      into->emplace();
    } else if (word.starts_with('#')) {
      words.skip_to("\n");
    } else if (word == "macdef") {
      words.skip_to("\n\n");
    } else if (!words.next(value)) {
      break;
    } else if (word == "machine") {
      into = value == host && !of_host ? &of_host : &unused;
      into->emplace();
    } else if (*into && word == "login") {
      (*into)->name = value;
    } else if (*into && word == "password") {
      (*into)->password = value;
    }
  }
  return of_host ? of_host : of_any;
}

std::optional<HttpLogin> netrc_login(const std::string& url) {
  const std::optional<Url> parsed = parse_url(url);
  const char* const named = std::getenv("NETRC");
  const std::optional<std::string> home = own_variable("HOME");
  if (!parsed || parsed->host.empty() || (named == nullptr && !home)) return std::nullopt;
  const std::filesystem::path file = named != nullptr ? named : std::filesystem::path(*home) / ".netrc";
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(file, unreadable)) return std::nullopt;
  try {
    return login_in_netrc(bundle::read_text(file, kMostNetrc), parsed->host);
  } catch (const bundle::Error&) {
    return std::nullopt;
  }
}

}  // namespace sealift::packager
