// SPDX-License-Identifier: Apache-2.0
// Accept, Range and If-None-Match as tables: what clients send, what hostile clients send, and what is made of it.
#include "offline_repo/protocols/negotiate.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace sealift::offline_repo;

namespace {

constexpr auto kJson = IndexFormat::Json;
constexpr auto kHtml = IndexFormat::Html;
constexpr auto kPlain = IndexFormat::PlainHtml;
constexpr char kPip[] =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";

}  // namespace

TEST_CASE("an Accept header picks the form that it likes best") {
  struct Row {
    std::string accept;
    std::optional<IndexFormat> expected;
  };
  const Row rows[] = {
      {kPip, kJson},
      {"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01", kJson},
      {"application/vnd.pypi.simple.v1+json;q=0.1, application/vnd.pypi.simple.v1+html", kHtml},
      {"text/html", kPlain},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", kPlain},
      {"", kPlain},
      {"  ", kPlain},
      {"*/*", kPlain},
      {"application/*", kJson},
      {"text/*", kPlain},
      {"*/*;q=0.5, application/vnd.pypi.simple.v1+json;q=0.1", kPlain},
      {"*/*, application/vnd.pypi.simple.v1+json", kJson},
      {"text/html, application/vnd.pypi.simple.v1+json", kJson},
      {"application/vnd.pypi.simple.latest+json", kJson},
      {"application/json", kJson},
      {"application/json;q=0.1, text/html", kPlain},
      {"application/vnd.pypi.simple.latest+html", kHtml},
      {"APPLICATION/vnd.PyPI.simple.v1+JSON", kJson},
      {"text/html;q=0, */*", kHtml},
      {"text/html;q=0", std::nullopt},
      {"application/vnd.pypi.simple.v2+json", std::nullopt},
      {"image/png", std::nullopt},
      {"text/html;level=1;q=0.4, application/vnd.pypi.simple.v1+html;q=0.3", kPlain},
      {"text/html;q=1.001", std::nullopt},
      {"text/html;q=2", std::nullopt},
      {"text/html;q=0.0001", std::nullopt},
      {"text/html;q=-1", std::nullopt},
      {"text/html;q=", std::nullopt},
      {",,;;,=", std::nullopt},
      {"text/html;Q=0.5", kPlain},
      {"text/html;q=1.000", kPlain},
      {"text/html;q=1.", kPlain},
  };
  for (const Row& row : rows) {
    CAPTURE(row.accept);
    CHECK(choose_format(row.accept, "") == row.expected);
  }
}

TEST_CASE("?format= goes before the Accept header") {
  CHECK(choose_format("text/html", "application/vnd.pypi.simple.v1+json") == kJson);
  CHECK(choose_format(kPip, "text/html") == kPlain);
  CHECK(choose_format(kPip, "application/vnd.pypi.simple.latest+html") == kHtml);
  CHECK(choose_format(kPip, "json") == std::nullopt);
  CHECK(choose_format(kPip, "*/*") == std::nullopt);
}

TEST_CASE("a Range header names one part, or nothing, or a part that is not there") {
  struct Row {
    std::string header;
    RangeKind kind;
    ByteRange range;
  };
  const std::string huge = "99999999999999999999999999";
  const Row rows[] = {
      {"", RangeKind::Whole, {0, 1000}},
      {"bytes=0-0", RangeKind::Part, {0, 1}},
      {"bytes=0-999", RangeKind::Part, {0, 1000}},
      {"bytes=10-19", RangeKind::Part, {10, 10}},
      {"bytes=990-", RangeKind::Part, {990, 10}},
      {"bytes=999-5000", RangeKind::Part, {999, 1}},
      {"bytes=-1", RangeKind::Part, {999, 1}},
      {"bytes=-1000", RangeKind::Part, {0, 1000}},
      {"bytes=-5000", RangeKind::Part, {0, 1000}},
      {"BYTES = 1-2", RangeKind::Part, {1, 2}},
      {"bytes=5-" + huge, RangeKind::Part, {5, 995}},
      {"bytes=-" + huge, RangeKind::Part, {0, 1000}},
      {"bytes=0-18446744073709551615", RangeKind::Part, {0, 1000}},
      {"bytes=1000-", RangeKind::Unsatisfiable, {}},
      {"bytes=1000-1001", RangeKind::Unsatisfiable, {}},
      {"bytes=" + huge + "-", RangeKind::Unsatisfiable, {}},
      {"bytes=" + huge + "-" + huge, RangeKind::Unsatisfiable, {}},
      {"bytes=-0", RangeKind::Unsatisfiable, {}},
      {"bytes=5-4", RangeKind::Whole, {0, 1000}},
      {"bytes=0-1,5-6", RangeKind::Whole, {0, 1000}},
      {"bytes=0-1, bytes=5-6", RangeKind::Whole, {0, 1000}},
      {"bytes=", RangeKind::Whole, {0, 1000}},
      {"bytes=-", RangeKind::Whole, {0, 1000}},
      {"bytes=--5", RangeKind::Whole, {0, 1000}},
      {"bytes=+1-2", RangeKind::Whole, {0, 1000}},
      {"bytes=1-2-3", RangeKind::Whole, {0, 1000}},
      {"bytes=0x1-0x2", RangeKind::Whole, {0, 1000}},
      {"bytes=a-b", RangeKind::Whole, {0, 1000}},
      {"lines=1-2", RangeKind::Whole, {0, 1000}},
      {"bytes", RangeKind::Whole, {0, 1000}},
      {"=0-1", RangeKind::Whole, {0, 1000}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.header);
    const RangeAnswer answer = answer_range(row.header, 1000);
    CHECK(answer.kind == row.kind);
    CHECK(answer.range == row.range);
  }
  CHECK(answer_range("bytes=0-", 0).kind == RangeKind::Unsatisfiable);
  CHECK(answer_range("bytes=-5", 0).kind == RangeKind::Unsatisfiable);
}

TEST_CASE("whatever a Range header says, the part lies inside the file") {
  std::mt19937 random(7);
  const std::string alphabet = "bytes=0123456789-, ";
  for (int round = 0; round < 50'000; ++round) {
    std::string header = round % 2 == 0 ? "bytes=" : "";
    for (unsigned length = random() % 24; length > 0; --length) header += alphabet[random() % alphabet.size()];
    const std::uint64_t size = random() % 50;
    const RangeAnswer answer = answer_range(header, size);
    CAPTURE(header);
    REQUIRE(answer.range.first <= size);
    REQUIRE(answer.range.count <= size - answer.range.first);
    REQUIRE((answer.kind != RangeKind::Part || answer.range.count > 0));
    choose_format(header, "");
  }
}

TEST_CASE("If-None-Match holds an ETag in a list, weakly, or as a star") {
  CHECK(lists_etag("\"abc\"", "\"abc\""));
  CHECK(lists_etag("\"x\", W/\"abc\"", "\"abc\""));
  CHECK(lists_etag("*", "\"abc\""));
  CHECK_FALSE(lists_etag("", "\"abc\""));
  CHECK_FALSE(lists_etag("abc", "\"abc\""));
  CHECK_FALSE(lists_etag("\"abcd\"", "\"abc\""));
}
