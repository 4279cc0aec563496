// SPDX-License-Identifier: Apache-2.0
// Others wrote the headers: every field is made fit to be shown. Source: purl-spec, type `rpm`; the namespace, which is
// a distribution's name, is left out, because a header does not say it in one way.
#include "packager/documents/rpm_facts.hpp"

#include "packager/documents/wheel_facts.hpp"
#include "packager/host/url.hpp"
#include "packager/rpm/rpm_header.hpp"

namespace sealift::packager {

namespace {

constexpr std::string_view kRpmFolder = "files/rpm/";

}  // namespace

std::string RpmFacts::purl() const {
  const std::string plain = epoch == "0" ? version : version.substr(epoch.size() + 1);
  return purl_of("rpm", name, plain) + "?arch=" + percent_encoded(architecture) +
         (epoch == "0" ? "" : "&epoch=" + epoch);
}

bool is_rpm(std::string_view path) {
  return path.starts_with(kRpmFolder) && path.ends_with(".rpm");
}

std::map<std::string, RpmFacts> read_rpm_facts(const bundle::VerifiedBundle& source) {
  std::map<std::string, RpmFacts> facts;
  for (const bundle::Entry& entry : source.manifest().entries) {
    if (!is_rpm(entry.path.text()) || entry.absent || entry.encoding != bundle::Encoding::Identity) continue;
    const RpmHeader header = read_rpm_header(*source.stored(entry));
    facts[entry.path.text()] = {.name = shown(header.name),
                                .epoch = header.epoch,
                                .version = shown(header.evr()),
                                .architecture = shown(header.arch),
                                .licence = shown(header.licence)};
  }
  return facts;
}

}  // namespace sealift::packager
