// SPDX-License-Identifier: Apache-2.0
// A catalogue of hubs that is accepted has one spelling, and each of its files is a file of the manifest.
#include "sealift/bundle/manifest/hub_catalogue.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/hostile_manifest.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  static const Manifest manifest = good_manifest();
  accepted([&] {
    const HubCatalogue catalogue = parse_hub_catalogue(text, manifest, "catalogue");
    must(write_hub_catalogue(catalogue) == text, "there is one spelling");
    for (const HubRepository& repository : catalogue) {
      must(is_hub_id(repository.name.id), "a name is safe in a path and in a URL");
      for (const HubRepositoryFile& file : repository.files) {
        const Entry* entry = manifest.find(file.entry);
        must(entry != nullptr && entry->kind == EntryKind::File && entry->sha256 == file.sha256, "a file is an entry");
      }
    }
  });
}
