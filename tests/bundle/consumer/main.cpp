// SPDX-License-Identifier: Apache-2.0
// A program outside this project: makes a bundle of one file, verifies it and reads the file back.
// Built against the installed package alone; that it links, with every library behind the headers, is most of the test.
#include <sealift/bundle.hpp>

#include <filesystem>
#include <iostream>

namespace {

using namespace sealift::bundle;

constexpr const char* kCreated = "2026-01-01T00:00:00Z";

Envelope signed_root(const PrivateKey& key) {
  Root root{.name = "site", .created = kCreated, .expires = "2036-01-01T00:00:00Z"};
  root.keys[key.public_key().id()] = {.algorithm = name_of(key.public_key().algorithm()),
                                      .spki = key.public_key().spki()};
  for (const std::string_view role : {kRootRole, kReleaseRole})
    root.roles[std::string(role)] = {.keys = {key.public_key().id()}, .threshold = 1, .algorithms = {}};
  Envelope envelope{.payload_type = std::string(kRootPayloadType), .payload = write_root(root), .signatures = {}};
  add_signature(envelope, key);
  return envelope;
}

void write_bundle(const std::filesystem::path& folder, const std::string& text, const Envelope& root,
                  const PrivateKey& key) {
  Manifest draft{.name = "demo", .channel = "stable", .version = 1, .created = kCreated};
  draft.target.glibc = draft.glibc_floor = {2, 28};
  const SafePath path = SafePath::parse("files/hello", "");
  draft.environment.placements.push_back({.entry = path, .into = "hello"});
  const ByteView bytes = as_bytes(text);
  Entry entry{.path = path, .size = text.size(), .sha256 = sha256(bytes), .encoding = Encoding::Zstd};
  entry.installed_size = 4096;
  entry.installed_files = 1;
  MemorySource source(Bytes(bytes.begin(), bytes.end()), "hello");
  BundleWriter writer(folder, draft, 0);
  writer.add(entry, source);
  writer.finish({root}, {&key, 1});
}

}  // namespace

int main() {
  const std::string text = "over the gap";
  const std::filesystem::path folder = std::filesystem::current_path() / "demo-1";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const PrivateKey key = PrivateKey::generate();
  const Envelope root = signed_root(key);
  write_bundle(folder, text, root, key);

  Trust trust;
  trust.state.pinned = root.digest();
  const VerifiedBundle verified = verify(open(folder), trust, *parse_time(kCreated));
  std::string read;
  verified.stream(verified.manifest().entries.at(0), [&read](ByteView bytes) { read += as_text(bytes); });
  std::cout << verified.manifest().stem() << ", root " << fingerprint_text(root.digest()) << ": " << read << '\n';
  return read == text ? 0 : 1;
}
