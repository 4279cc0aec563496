// SPDX-License-Identifier: Apache-2.0
// The index is signed, but others wrote its text: every field is made fit to be shown, and a stanza counts only
// for the entry with its digest. Source: debian-policy, chapter 5; purl-spec, type `deb`.
#include "packager/documents/deb_facts.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"
#include "packager/documents/wheel_facts.hpp"
#include "packager/resolve/metadata_headers.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::string_view kPackageFolder = "files/apt/";
constexpr std::string_view kIndex = "files/apt/Packages";
constexpr std::uint64_t kMaxPackageIndex = std::uint64_t{64} << 20;

std::string read_index(const bundle::VerifiedBundle& source, const bundle::Entry& entry) {
  if (entry.size > kMaxPackageIndex)
    throw Error(ErrorCode::Format, {.what = "the index of the Debian packages is too large",
                                    .where = source.manifest().stem() + ":" + entry.path.text(),
                                    .expected = "at most " + std::to_string(kMaxPackageIndex) + " bytes",
                                    .got = std::to_string(entry.size) + " bytes"});
  std::string text;
  source.stream(entry, [&text](bundle::ByteView piece) { text.append(bundle::as_text(piece)); });
  return text;
}

// A word that can stand in a purl as it is.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

DebFacts facts_of(const MetadataHeaders& stanza) {
  const std::string origin = bundle::case_folded(stanza.first("Origin"));
  return {.name = shown(stanza.first("Package")),
          .version = shown(stanza.first("Version")),
          .architecture = shown(stanza.first("Architecture")),
          .origin = is_word(origin) ? origin : "debian"};  // Debian's own lists do not say it
}

}  // namespace

std::string DebFacts::purl() const {
  return purl_of("deb/" + origin, name, version) + (is_word(architecture) ? "?arch=" + architecture : "");
}

bool is_deb(std::string_view path) {
  return path.starts_with(kPackageFolder) && path.ends_with(".deb");
}

std::map<std::string, DebFacts> read_deb_facts(const bundle::VerifiedBundle& source) {
  std::map<std::string, DebFacts> facts;
  std::string index;
  for (const bundle::Entry& entry : source.manifest().entries)
    if (entry.path.text() == kIndex && !entry.absent) index = read_index(source, entry);
  std::map<std::string, DebFacts> by_digest;
  for (std::size_t begin = 0; begin < index.size();) {
    const std::size_t end = std::min(index.find("\n\n", begin), index.size());
    const MetadataHeaders stanza(std::string_view(index).substr(begin, end - begin));
    DebFacts deb = facts_of(stanza);
    if (!deb.name.empty() && !deb.version.empty()) by_digest[stanza.first("SHA256")] = std::move(deb);
    begin = end + 2;
  }
  for (const bundle::Entry& entry : source.manifest().entries)
    if (is_deb(entry.path.text()))
      if (const auto deb = by_digest.find(entry.sha256.hex()); deb != by_digest.end())
        facts[entry.path.text()] = deb->second;
  return facts;
}

}  // namespace sealift::packager
