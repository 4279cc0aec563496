// SPDX-License-Identifier: Apache-2.0
// Keys are made anew each time, since nothing but their algorithms matters.
#include "tests/bundle/faulty/faulty_bundles.hpp"

#include <iostream>

namespace sealift::test {

fs::path faulty_folder;
const PrivateKey key = PrivateKey::generate(Algorithm::EcdsaP256), other = PrivateKey::generate(Algorithm::Ed25519),
                 third = PrivateKey::generate(Algorithm::EcdsaP384), chinese = PrivateKey::generate(Algorithm::Sm2);

TinyBundle tiny(DigestAlgorithm digest) {
  TinyBundle tiny{.version = 7, .volume_size = 8192, .digest = digest};
  tiny.items = {wheel_item({}),
                {.path = "files/\"a\"", .bytes = std::string(5000, 'a'), .into = "share/a"},
                {.path = "files/b", .bytes = std::string(4000, 'b'), .into = "share/b", .encoding = Encoding::Zstd}};
  return tiny;
}

void report(const std::string& name, const Digest& pinned) {
  std::cout << name << ' ' << pinned.hex() << '\n';
}

MadeBundle fresh(const std::string& name, const TinyBundle& made) {
  const MadeBundle bundle = make_bundle(faulty_folder / name, made, key);
  report(name, *bundle.trusted.state.pinned);
  return bundle;
}

MadeBundle under(const std::string& name, const Chain& roots, const Keys& signers, std::size_t pinned) {
  const MadeBundle made = make_bundle(faulty_folder / name, tiny(), key);
  reseal(made, roots, signers);
  report(name, roots.at(pinned).digest());
  return made;
}

void seal_bytes(const MadeBundle& made, const std::string& manifest, std::string_view type) {
  const Seal seal{.roots = {one_key_root(key)}, .manifest = signed_document(manifest, {&key}, type)};
  write_file(made.seal(), write_seal(seal));
}

void flip(const fs::path& file, std::uint64_t bit) {
  std::string bytes = read_file(file);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  write_file(file, bytes);
}

void root(const std::string& name, const std::function<void(Json&)>& change, const Keys& signers) {
  Json json = parse_json(write_root(make_root({&key, &other}, {&key})), "");
  change(json);
  under("root-" + name, {signed_document(json.dump(), signers, kRootPayloadType)}, {&key});
}

}  // namespace sealift::test
