// SPDX-License-Identifier: Apache-2.0
// What a signature covers must mean the same to every reader: everything ambiguous in JSON is refused.
#include "bundle/core/json.hpp"

#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

TEST_CASE("strict JSON refuses what two parsers could read differently") {
  const std::pair<std::string, std::string> cases[] = {{R"({"a":1,"a":2})", "stands twice"},
                                                       {R"({"a":{"b":1,"b":1}})", "stands twice"},
                                                       {R"({"a":1.5})", "no integer"},
                                                       {R"({"a":1e3})", "no integer"},
                                                       {R"({"a":9007199254740992})", "2^53-1"},
                                                       {R"({"a":-9007199254740992})", "2^53-1"},
                                                       {R"({"a":99999999999999999999})", "integer"},
                                                       {"\xef\xbb\xbf{}", "byte order mark"},
                                                       {"{\"a\":\"\xff\"}", "does not parse"},
                                                       {R"({"a":1,})", "does not parse"},
                                                       {R"({} {})", "does not parse"},
                                                       {R"({"a":NaN})", "does not parse"},
                                                       {R"({"a":1 /* c */})", "does not parse"},
                                                       {"", "does not parse"},
                                                       {R"({"a":"\ud800"})", "does not parse"}};
  for (const auto& each : cases) {
    const auto& text = each.first;
    const auto& reason = each.second;
    CAPTURE(text);
    CHECK_REFUSED(parse_json(text, "the file"), Format, reason);
    CHECK_REFUSED(parse_json(text, "the file"), Format, "the file");
  }
}

TEST_CASE("nesting is bounded at 32 levels") {
  CHECK_NOTHROW(parse_json(std::string(32, '[') + std::string(32, ']'), "x"));
  CHECK_REFUSED(parse_json(std::string(33, '[') + std::string(33, ']'), "x"), Format, "32 levels");
  CHECK_REFUSED(parse_json(std::string(1'000'000, '['), "x"), Format, "32 levels");
}

TEST_CASE("objects are read field by field, with every surprise named") {
  const Json json = parse_json(R"({"text":"abc","number":7,"extra":true})", "f");
  JsonObject object(json, "f");
  CHECK(object.string("text") == "abc");
  CHECK(object.integer("number", 7) == 7);
  CHECK_REFUSED(object.done(), Format, "'extra'");
  CHECK_REFUSED(object.string("gone"), Format, "'gone' is missing");
  CHECK_REFUSED(object.integer("number", 6), Format, "f.number");
  CHECK_REFUSED(object.integer("text"), Format, "integer was expected");
  CHECK_REFUSED(object.string("text", 2), Format, "too long");
  CHECK_REFUSED(object.digest("text"), Format, "SHA-256");
  CHECK(object.boolean("extra"));
  CHECK_NOTHROW(object.done());
}

TEST_CASE("a NUL does not end a document early") {
  CHECK_REFUSED(parse_json(std::string("{}\0", 3), "x"), Format, "NUL at offset 2");
  CHECK_REFUSED(parse_json(std::string("{\"a\":1}\0{\"a\":2}", 15), "x"), Format, "NUL at offset 7");
}

TEST_CASE("a long array of objects takes time in proportion to its length") {
  std::string text = "[{}";
  for (int i = 0; i < 1'000'000; ++i) text += ",{}";
  CHECK(parse_json(text + "]", "x").size() == 1'000'001);  // quadratic time would end the test by its limit
  CHECK_REFUSED(parse_json(text + "]", "x", 1'000'001), Format, "more than 1000001 values");
}

TEST_CASE("whole elements of the root object's arrays can be taken as they are read") {
  std::vector<std::string> taken;
  const auto take = [&taken](const std::string& key, const Json& element) {
    taken.push_back(key + " " + element.dump());
  };
  const std::string text = R"({"a":[1,{"x":[2,{"y":3}]},[4,[5]],null],"b":{"c":[6]},"d":[],"e":["f",true],"g":7})";
  const Json left = parse_json(text, "x", kMaxJsonValues, take);
  CHECK(taken ==
        std::vector<std::string>{"a 1", R"(a {"x":[2,{"y":3}]})", "a [4,[5]]", "a null", R"(e "f")", "e true"});
  CHECK(left == Json::parse(R"({"a":[],"b":{"c":[6]},"d":[],"e":[],"g":7})"));
  taken.clear();
  CHECK(parse_json("[1,[2],{\"a\":3}]", "x", kMaxJsonValues, take).size() == 3);  // its root is no object
  CHECK(taken.empty());
  CHECK_REFUSED(parse_json(text, "x", 20, take), Format, "more than 20 values");  // taken or not, each counts
  CHECK_NOTHROW(parse_json(text, "x", 21, take));
}
