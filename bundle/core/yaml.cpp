// SPDX-License-Identifier: Apache-2.0
// Builds the tree from the parser's events; see yaml.hpp. Its own tree would follow aliases, and keep the last of two
// equal keys.
#include "bundle/core/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {
namespace {

class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(const std::string& where) : where_(where) {}

  YamlNode take() { return std::move(root_); }

  [[noreturn]] void refuse(int line, const std::string& why, const std::string& got = {}) const {
    throw Error(ErrorCode::Format, {.what = "YAML is not acceptable: " + why,
                                    .where = where_ + ", line " + std::to_string(line),
                                    .got = SafePath::printable(got)});
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { put(mark, {}); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { put(mark, {.kind = YamlNode::Kind::Alias}); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& text) override {
    require_no_tag(mark, tag);
    put(mark, {.kind = YamlNode::Kind::Text, .text = text, .quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    require_no_tag(mark, tag);
    open(mark, YamlNode::Kind::List);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    require_no_tag(mark, tag);
    open(mark, YamlNode::Kind::Map);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // "?" is a plain value, "!" one in quotes; both are the parser's own.
  void require_no_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark.line + 1, "it has a tag", tag);
  }

  YamlNode* put(const YAML::Mark& mark, YamlNode node) {
    node.line = mark.line + 1;
    if (++nodes_ > kMaxYamlNodes) refuse(node.line, "it has too many values");
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    YamlNode& parent = *open_.back();
    if (parent.kind == YamlNode::Kind::List) return &parent.items.emplace_back(std::move(node));
    if (!at_value_) {
      begin_member(parent, node);
      return nullptr;
    }
    at_value_ = false;
    parent.members.back().second = std::move(node);
    return &parent.members.back().second;
  }

  void begin_member(YamlNode& parent, const YamlNode& key) {
    if (key.kind != YamlNode::Kind::Text) refuse(key.line, "a key is no text");
    if (parent.find(key.text) != nullptr) refuse(key.line, "a key stands twice", key.text);
    if (parent.members.size() >= kMaxMembers) refuse(key.line, "a map has too many keys");
    parent.members.emplace_back(key.text, YamlNode{.line = key.line});
    at_value_ = true;
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (open_.size() >= kMaxYamlDepth) refuse(mark.line + 1, "it is nested too deeply");
    YamlNode* const node = put(mark, {.kind = kind});
    if (node == nullptr) refuse(mark.line + 1, "a key is no text");
    open_.push_back(node);
  }

  static constexpr std::size_t kMaxMembers = 2'000;  // each is compared with those before it

  const std::string& where_;
  YamlNode root_;
  std::vector<YamlNode*> open_;  // none moves: a list or map gets nothing more while one of its values is open
  bool at_value_ = false;        // the innermost map has a key without its value
  std::size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& each) { return each.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

YamlNode parse_yaml(std::string_view text, const std::string& where) {
  YamlBuilder builder(where);
  if (text.size() > kMaxYaml) builder.refuse(1, "it is larger than 1 MiB");
  if (!is_utf8(text) || text.find('\0') != text.npos) builder.refuse(1, "it is not UTF-8");
  try {
    // Its end is marked, since the parser takes an open quote for closed where the text just stops.
    std::istringstream stream(std::string(text) + (text.empty() || text.ends_with('\n') ? "" : "\n") + "...\n");
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    YamlBuilder second(where);
    if (parser.HandleNextDocument(second)) builder.refuse(1, "it has two documents");
  } catch (const YAML::Exception& error) {
    builder.refuse(std::max(error.mark.line, 0) + 1, error.msg);
  }
  return builder.take();
}

}  // namespace sealift::bundle
