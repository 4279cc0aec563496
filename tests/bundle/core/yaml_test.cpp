// SPDX-License-Identifier: Apache-2.0
// YAML as a tree of texts, and what a stranger may not have it do.
#include "bundle/core/yaml.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using Kind = YamlNode::Kind;

namespace {

YamlNode yaml(const std::string& text) {
  return parse_yaml(text, "job.yaml");
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("maps, lists and texts of YAML become a tree, each with its line") {
  const YamlNode root =
      yaml("# a job\nname: one\nlayers:\n  - {kind: a, width: 3}\n  - kind: b\n    note: |\n      two\n      lines\n");
  REQUIRE(root.kind == Kind::Map);
  CHECK(root.find("name")->text == "one");
  const YamlNode& layers = *root.find("layers");
  REQUIRE(layers.items.size() == 2);
  CHECK(layers.items[0].find("width")->text == "3");
  CHECK(layers.items[1].find("note")->text == "two\nlines\n");
  CHECK(layers.items[1].find("note")->quoted);
  CHECK(layers.items[1].find("note")->line == 6);
  CHECK(root.find("width") == nullptr);
  CHECK(yaml("").kind == Kind::Null);
  CHECK(yaml("--- \na: 1\n...\n").find("a")->text == "1");
}

TEST_CASE("what the versions of YAML see differently stays the text that was written") {
  const YamlNode root =
      yaml("a: no\nb: 012\nc: 1e5\nd: 1:30\ne: 2001-01-01\nf: 'null'\ng: ~\nh:\ni: \"x\\ty\"\nj: .inf\nk: 0x1F\n");
  for (const auto& [key, text] : {std::pair{"a", "no"},
                                  {"b", "012"},
                                  {"c", "1e5"},
                                  {"d", "1:30"},
                                  {"e", "2001-01-01"},
                                  {"f", "null"},
                                  {"i", "x\ty"},
                                  {"j", ".inf"},
                                  {"k", "0x1F"}}) {
    CHECK(root.find(key)->kind == Kind::Text);
    CHECK(root.find(key)->text == text);
    CHECK(root.find(key)->quoted == (*key == 'f' || *key == 'i'));
  }
  CHECK(root.find("g")->kind == Kind::Null);
  CHECK(root.find("h")->kind == Kind::Null);
}

TEST_CASE("an alias is not followed, so that a bomb of them stays as small as it is written") {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name <= 'z'; ++name)
    bomb += std::string(1, name) + ": &" + name + " [" +
            repeated(std::string("*") + static_cast<char>(name - 1) + ", ", 10) + "]\n";
  const YamlNode root = yaml(bomb);
  CHECK(root.members.size() == 26);
  CHECK(root.find("z")->items.size() == 10);
  CHECK(root.find("z")->items[0].kind == Kind::Alias);
  CHECK(root.find("z")->items[0].items.empty());
  const YamlNode merged = yaml("base: &base {seed: 1}\nrun:\n  <<: *base\n");
  CHECK(merged.find("run")->find("seed") == nullptr);
  CHECK(merged.find("run")->find("<<")->kind == Kind::Alias);
}

TEST_CASE("YAML that two readers could see differently is refused with its line") {
  CHECK_REFUSED(yaml("a: 1\nb: 2\na: 3\n"), Format, "job.yaml, line 3");
  CHECK_REFUSED(yaml("a: 1\nb: 2\na: 3\n"), Format, "a key stands twice");
  CHECK_REFUSED(yaml("x: {a: 1, \"a\": 2}\n"), Format, "a key stands twice");
  CHECK_REFUSED(yaml("? [a, b]\n: 1\n"), Format, "a key is no text");
  CHECK_REFUSED(yaml("{a: 1}: 1\n"), Format, "a key is no text");
  CHECK_REFUSED(yaml("null: 1\n"), Format, "a key is no text");
  CHECK_REFUSED(yaml("a: 1\n---\nb: 2\n"), Format, "two documents");
  CHECK_REFUSED(yaml("a: !!python/object/apply:os.system [ls]\n"), Format, "it has a tag");
  CHECK_REFUSED(yaml("a: !!binary aGk=\n"), Format, "it has a tag");
  CHECK_REFUSED(yaml("a: !own {b: 1}\n"), Format, "it has a tag");
}

TEST_CASE("text other than YAML is refused with its line") {
  CHECK_REFUSED(yaml("a: 1\n  b: 2\n"), Format, "job.yaml, line 2");
  CHECK_REFUSED(yaml("a: [1, 2\n"), Format, "not acceptable");
  CHECK_REFUSED(yaml("a: 'b\n"), Format, "not acceptable");
  CHECK_REFUSED(yaml("a: \"\\q\"\n"), Format, "not acceptable");
  CHECK_REFUSED(yaml("a:\n\tb: 1\n"), Format, "not acceptable");
  CHECK_REFUSED(yaml("a: *nowhere\n"), Format, "not acceptable");
  CHECK_REFUSED(yaml("a: \xff\n"), Format, "not UTF-8");
  CHECK_REFUSED(yaml(std::string("a: b\0c\n", 7)), Format, "not UTF-8");
  CHECK_REFUSED(yaml(std::string("\xff\xfe"
                                 "a\0:\0",
                                 6)),
                Format, "not UTF-8");
}

TEST_CASE("YAML is bounded in size, depth, keys and values, and refused soon") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK_REFUSED(yaml(std::string(kMaxYaml + 1, 'a')), Format, "larger than 1 MiB");
  CHECK(yaml(repeated("[", 31) + repeated("]", 31)).kind == Kind::List);
  for (const char* nest : {"[", "{a: ", "- ", "? ", "[{a: "}) CHECK_REFUSED(yaml(repeated(nest, 100'000)), Format, "");
  std::string keys, values = "a: [";
  for (int i = 0; i < 3'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  for (int i = 0; i < 110'000; ++i) values += "1, ";
  CHECK_REFUSED(yaml(keys), Format, "too many keys");
  CHECK_REFUSED(yaml(values + "]\n"), Format, "too many values");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}
