// SPDX-License-Identifier: Apache-2.0
// The catalogue of hubs reads back as it was written, in one spelling; each rule has a text that breaks only that rule.
#include "sealift/bundle/manifest/hub_catalogue.hpp"

#include "bundle/core/json.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

Digest digest_of(const std::string& text) {
  return sha256(as_bytes(text));
}

HubRepositoryFile file(const std::string& path, const std::string& entry) {
  return {.path = SafePath::parse(path, ""),
          .entry = SafePath::parse(entry, ""),
          .size = entry.size(),
          .sha256 = digest_of(entry)};
}

const std::string kCommit(40, 'c');

HubCatalogue sample_catalogue() {
  return {{.name = {.id = "gpt2"}, .commit = kCommit, .revisions = {}, .files = {file("config.json", "files/a")}},
          {.name = {.id = "org/tiny"},
           .commit = kCommit,
           .revisions = {"main", "refs/pr/1"},
           .files = {file("config.json", "files/b"), file("sub/weights.safetensors", "files/c")}},
          {.name = {.kind = RepositoryKind::Dataset, .id = "org/tiny"},
           .commit = kCommit,
           .revisions = {"main"},
           .files = {file("rows.jsonl", "files/d")}},
          {.name = {.hub = HubKind::ModelScope, .id = "Org/Tiny"},
           .commit = "master",
           .revisions = {},
           .files = {file("config.json", "files/a")}}};
}

// Entries files/a to files/d, each with its own path as its bytes; and a wheel of the same kind of name.
Manifest manifest() {
  Manifest made;
  for (const char* path : {"files/a", "files/b", "files/c", "files/d", "wheels/w"}) {
    Entry entry{.path = SafePath::parse(path, ""), .size = std::string(path).size(), .sha256 = digest_of(path)};
    entry.kind = std::string(path).starts_with("wheels") ? EntryKind::Wheel : EntryKind::File;
    made.entries.push_back(entry);
  }
  return made;
}

HubCatalogue parsed(const std::string& text) {
  return parse_hub_catalogue(text, manifest(), "catalogue");
}

// The sample with one value changed, in the spelling of a writer.
std::string changed(const char* pointer, const Json& value) {
  Json json = Json::parse(write_hub_catalogue(sample_catalogue()));
  json[Json::json_pointer(pointer)] = value;
  return write_json(json) + "\n";
}

}  // namespace

TEST_CASE("a catalogue of hubs reads back as it was written, whatever order it was given in") {
  const std::string text = write_hub_catalogue(sample_catalogue());
  CHECK(parsed(text) == sample_catalogue());
  HubCatalogue reversed = sample_catalogue();
  std::reverse(reversed.begin(), reversed.end());
  for (HubRepository& one : reversed) std::reverse(one.files.begin(), one.files.end());
  CHECK(write_hub_catalogue(reversed) == text);
  CHECK(parsed(write_hub_catalogue({})).empty());
}

TEST_CASE("one commit that a job takes twice is one repository with the files and names of both") {
  HubCatalogue twice = sample_catalogue();
  HubRepository other = twice[1];
  other.revisions = {"v1"};
  other.files = {file("config.json", "files/b"), file("more.json", "files/d")};
  other.files[0].entry = SafePath::parse("files/elsewhere", "");  // the same bytes at a second place
  twice.push_back(other);
  const HubCatalogue merged = parsed(write_hub_catalogue(twice));
  REQUIRE(merged.size() == sample_catalogue().size());
  CHECK(merged[1].revisions == std::vector<std::string>{"main", "refs/pr/1", "v1"});
  CHECK(merged[1].files.size() == 3);
  CHECK(merged[1].files[0].entry.text() == "files/b");
  twice.back().files[0].sha256 = digest_of("other");
  CHECK_REFUSED(write_hub_catalogue(twice), Usage, "two files of one path");
}

TEST_CASE("a catalogue of hubs with one fault is refused for it") {
  struct Case {
    const char* pointer;
    Json value;
    ErrorCode code;
    const char* reason;
  };
  const Case cases[] = {
      {"/format", 2, ErrorCode::CannotCheck, "a newer sealift-repo"},
      {"/surprise", 1, ErrorCode::Format, "surprise"},
      {"/repositories", Json::object(), ErrorCode::Format, "repositories"},
      {"/repositories/1/surprise", 1, ErrorCode::Format, "surprise"},
      {"/repositories/1/hub", "github", ErrorCode::CannotCheck, "github"},
      {"/repositories/1/kind", "space", ErrorCode::CannotCheck, "space"},
      {"/repositories/1/id", "../etc", ErrorCode::Format, "not the name of a repository"},
      {"/repositories/1/id", "a/b/c", ErrorCode::Format, "not the name of a repository"},
      {"/repositories/1/id", "org/na\nme", ErrorCode::Format, "not the name of a repository"},
      {"/repositories/1/id", std::string(97, 'a'), ErrorCode::Format, "not the name of a repository"},
      {"/repositories/1/id", "aaa", ErrorCode::Format, "not sorted"},
      {"/repositories/1/commit", "main", ErrorCode::Format, "40 hexadecimal digits"},
      {"/repositories/1/commit", std::string(40, 'C'), ErrorCode::Format, "40 hexadecimal digits"},
      {"/repositories/3/commit", "", ErrorCode::Format, "branch or tag"},
      {"/repositories/1/revisions/0", "a b", ErrorCode::Format, "branch or tag"},
      {"/repositories/1/revisions/0", kCommit, ErrorCode::Format, "branch or tag"},
      {"/repositories/1/revisions/0", "zzz", ErrorCode::Format, "not sorted"},
      {"/repositories/1/revisions/0", 1, ErrorCode::Format, "branch or tag"},
      {"/repositories/1/files/0/path", "../config.json", ErrorCode::Format, "not safe"},
      {"/repositories/1/files/0/path", "/etc/passwd", ErrorCode::Format, "not safe"},
      {"/repositories/1/files/0/path", "zzz", ErrorCode::Format, "not sorted"},
      {"/repositories/1/files/0/path", "sub", ErrorCode::Format, "below another file"},
      {"/repositories/1/files/0/path", "sub/weights.safetensors", ErrorCode::Format, "two files of one path"},
      {"/repositories/1/files/0/entry", "../files/b", ErrorCode::Format, "not safe"},
      {"/repositories/1/files/0/entry", "files/absent", ErrorCode::Format, "the manifest has no file"},
      {"/repositories/1/files/0/entry", "wheels/w", ErrorCode::Format, "the manifest has no file"},
      {"/repositories/1/files/0/size", 8, ErrorCode::Format, "the manifest has no file"},
      {"/repositories/1/files/0/size", -1, ErrorCode::Format, "size"},
      {"/repositories/1/files/0/sha256", std::string(64, '0'), ErrorCode::Format, "the manifest has no file"},
      {"/repositories/1/files/0/surprise", 1, ErrorCode::Format, "surprise"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pointer);
    CAPTURE(one.value.dump());
    const Error error = sealift::test::refusal([&] { parsed(changed(one.pointer, one.value)); });
    CHECK(error.code() == one.code);
    CHECK_MESSAGE(sealift::test::mentions(error, one.reason), error.what());
  }
  const std::string text = write_hub_catalogue(sample_catalogue());
  for (const std::string& other : {" " + text, text + "\n", text.substr(0, text.size() - 1), std::string()})
    CHECK_REFUSED(parsed(other), Format, "catalogue");
  CHECK_REFUSED(parsed(std::string(kMaxHubCatalogue + 1, ' ')), Format, "larger than 64 MiB");
}

TEST_CASE("a catalogue of hubs that no reader would take is not written") {
  for (const std::string commit : {"main", "", "CCCC"}) {
    HubCatalogue bad = sample_catalogue();
    bad[1].commit = commit;
    CHECK_REFUSED(write_hub_catalogue(bad), Usage, "40 hexadecimal digits");
  }
}
