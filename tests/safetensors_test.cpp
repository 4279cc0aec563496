// SPDX-License-Identifier: Apache-2.0
// The safetensors container: what is written is read back, and every way in which a file can be wrong is refused.
// Needs neither half. Bad files are made here, one fault each; that Python's reader agrees is train.export_python's.
#include <sealift/safetensors.hpp>

#include <doctest/doctest.h>

using namespace sealift::safetensors;

namespace {

std::string with_length(const std::string& header, const std::string& data = {}) {
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(header.size() >> (8 * i)));
  return length + header + data;
}

Header read(const std::string& file) {
  return read_header(
      file.size(), [&](std::uint64_t offset, char* data, std::size_t bytes) { file.copy(data, bytes, offset); },
      "bad.safetensors");
}

/// A file whose header is `entries` inside braces, with `bytes` bytes of data.
Header read_entries(const std::string& entries, std::size_t bytes) {
  return read(with_length("{" + entries + "}", std::string(bytes, '\0')));
}

}  // namespace

TEST_CASE("what is written is read back, aligned and in the order of the data") {
  Header header{.tensors = {{.name = "half", .dtype = "BF16", .shape = {3}},
                            {.name = "whole", .dtype = "F32", .shape = {2, 5}},
                            {.name = "scalar", .dtype = "F64", .shape = {}},
                            {.name = "empty", .dtype = "I64", .shape = {0, 7}},
                            {.name = "quoted \"\\ \xc3\xa9", .dtype = "F32", .shape = {1}}},
                .metadata = {{"format", "pt"}, {"a", ""}}};
  const auto text = write_header(header);
  CHECK(text.size() % 8 == 0);
  CHECK(text.size() == header.data_begin);
  const auto got = read(text + std::string(header.data_bytes(), 'x'));
  CHECK(got.metadata == header.metadata);
  CHECK(got.data_begin == header.data_begin);
  CHECK(got.file_bytes() == text.size() + 8 + 40 + 4 + 6);
  REQUIRE(got.tensors.size() == 5);
  for (const auto& tensor : header.tensors) {
    const auto same = std::find_if(got.tensors.begin(), got.tensors.end(),
                                   [&](const auto& other) { return other.name == tensor.name; });
    REQUIRE(same != got.tensors.end());
    CHECK(same->dtype == tensor.dtype);
    CHECK(same->shape == tensor.shape);
    CHECK(same->begin == tensor.begin);
    CHECK(same->end == tensor.end);
    CHECK(same->begin % (*bits_of(same->dtype) / 8) == 0);
  }
}

TEST_CASE("a file without tensors is a file") {
  Header header;
  CHECK(read(write_header(header)).tensors.empty());
}

TEST_CASE(
    "what another writer may write is read: any order, spaces at the end, sub-byte elements, keys we do not know") {
  const auto header = read_entries(
      R"("b":{"dtype":"F4","shape":[2,3],"data_offsets":[4,7]},"a":{"shape":[1],"dtype":"F32","data_offsets":[0,4],"x":1}   )",
      7);
  REQUIRE(header.tensors.size() == 2);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[1].bytes() == 3);
}

TEST_CASE("white space before the header is read, as upstream does, and said") {
  CHECK(read(with_length(" \n{}")).padded);
  CHECK_FALSE(read(with_length("{} ")).padded);
}

TEST_CASE("a file that is too short, or whose header does not fit, is refused before anything is allocated") {
  CHECK_THROWS_WITH_AS(read("1234567"), "bad.safetensors: it has 7 bytes; a safetensors file has at least 8",
                       FormatError);
  CHECK_THROWS_WITH(read(std::string("\x03\0\0\0\0\0\0\0{}", 10)), doctest::Contains("the file ends after 2 of them"));
  CHECK_THROWS_WITH(read(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
                    doctest::Contains("at most 100000000"));
  CHECK_THROWS_WITH(read(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)), doctest::Contains("100000001 bytes"));
}

TEST_CASE("a header that is no such JSON is refused") {
  CHECK_THROWS_WITH(read(with_length("")), doctest::Contains("does not start with '{'"));
  CHECK_THROWS_WITH(read(with_length(" ")), doctest::Contains("does not start with '{'"));
  CHECK_THROWS_WITH(read(with_length(" []")), doctest::Contains("does not start with '{'"));
  CHECK_THROWS_WITH(read(with_length("{")), doctest::Contains("does not parse"));
  CHECK_THROWS_WITH(read(with_length("{}x")), doctest::Contains("does not parse"));
  CHECK_THROWS_WITH(read(with_length("{\"\xff\":1}")), doctest::Contains("does not parse"));
  CHECK_THROWS_WITH(read_entries(R"("a":[[[[1]]]])", 0), doctest::Contains("nested deeper than 3"));
  CHECK_THROWS_WITH(read_entries(R"("a":1)", 0), doctest::Contains("tensor 'a': it has no dtype"));
  CHECK_THROWS_WITH(read_entries(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                                    "a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})",
                                 4),
                    doctest::Contains("a key stands twice: 'a'"));
  CHECK_THROWS_WITH(read_entries(R"("a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4),
                    doctest::Contains("a key stands twice: 'dtype'"));
  CHECK_THROWS_WITH(read_entries(R"("__metadata__":{"a":1})", 0), doctest::Contains("no text under 'a'"));
  CHECK_THROWS_WITH(read_entries(R"("__metadata__":{"a":{}})", 0), doctest::Contains("no text under 'a'"));
  CHECK_THROWS_WITH(read_entries(R"("__metadata__":null)", 0), doctest::Contains("__metadata__ is no object"));
  CHECK_THROWS_WITH(read_entries(R"("__metadata__":{"a":"1","a":"2"})", 0),
                    doctest::Contains("a key stands twice: 'a'"));
}

TEST_CASE("a tensor whose entry is incomplete or impossible is refused by name") {
  const auto refused = [](const std::string& entry, std::size_t bytes = 4) {
    try {
      read_entries("\"w\":{" + entry + "}", bytes);
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto says = [&](const std::string& entry, const char* text, std::size_t bytes = 4) {
    CAPTURE(entry);
    CHECK(refused(entry, bytes).find(std::string("bad.safetensors, tensor 'w': ") + text) == 0);
  };
  CHECK(refused(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])") == "accepted");
  says(R"("shape":[1],"data_offsets":[0,4])", "it has no dtype");
  says(R"("dtype":"F32","data_offsets":[0,4])", "it has no shape");
  says(R"("dtype":"F32","shape":[1])", "it has no data_offsets");
  says(R"("dtype":32,"shape":[1],"data_offsets":[0,4])", "its dtype is no text");
  says(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", "dtype is 'F33'");
  says(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", "dtype is 'f32'");
  says(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", "its shape is no list");
  says(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "its shape has -1");
  says(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "its shape has 1.0");
  says(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4])", "its shape has 1.8");
  says(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", "its shape has \"1\"");
  says(R"("dtype":"F32","shape":[1],"data_offsets":[4])", "its data_offsets are not two numbers");
  says(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", "its data_offsets are not two numbers");
  says(R"("dtype":"F32","shape":[1],"data_offsets":[0,-4])", "data_offsets has -4");
  says(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", "its data ends before it begins");
  says(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "its dtype and shape make 8 bytes but its data has 4");
  says(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", "the tensor has 12 bits; expected whole bytes");
  says(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])", "the shape has more bits");
  // 2^59 * 32 bits wrap to 0 where nobody looks.
  says(R"("dtype":"F32","shape":[576460752303423488],"data_offsets":[0,0])", "the shape has more bits", 0);
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  says("\"dtype\":\"F32\",\"shape\":[" + many + "],\"data_offsets\":[0,4]", "its shape is no list of at most 64");
}

TEST_CASE("holes, overlaps, missing and trailing bytes are refused") {
  const auto two = [](const std::string& first, const std::string& second, std::size_t bytes) {
    return read_entries(R"("a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                            R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}",
                        bytes);
  };
  CHECK(two("[4,8]", "[0,4]", 8).tensors[0].name == "b");
  CHECK_THROWS_WITH(two("[0,4]", "[5,9]", 9), doctest::Contains("tensor 'b' begins at byte 5 of the data; expected 4"));
  CHECK_THROWS_WITH(two("[1,5]", "[5,9]", 9), doctest::Contains("there is a hole"));
  CHECK_THROWS_WITH(two("[0,4]", "[3,7]", 7), doctest::Contains("two tensors overlap"));
  CHECK_THROWS_WITH(two("[0,4]", "[0,4]", 4), doctest::Contains("two tensors overlap"));
  CHECK_THROWS_WITH(two("[0,4]", "[4,8]", 7), doctest::Contains("8 bytes but the file has 7"));
  CHECK_THROWS_WITH(two("[0,4]", "[4,8]", 9), doctest::Contains("8 bytes but the file has 9"));
  CHECK_THROWS_WITH(read(with_length("{}", "x")), doctest::Contains("0 bytes but the file has 1"));
}

TEST_CASE("what no reader would take is not written") {
  const auto write = [](std::vector<Tensor> tensors, std::map<std::string, std::string> metadata = {}) {
    Header header{.tensors = std::move(tensors), .metadata = std::move(metadata)};
    return write_header(header);
  };
  CHECK_THROWS_WITH(write({{.name = "a", .dtype = "F32"}, {.name = "a", .dtype = "F32"}}),
                    doctest::Contains("same name"));
  CHECK_THROWS_WITH(write({{.name = "__metadata__", .dtype = "F32"}}, {{"a", "b"}}), doctest::Contains("__metadata__"));
  CHECK_THROWS_WITH(write({{.name = "__metadata__", .dtype = "F32"}}), doctest::Contains("__metadata__"));
  CHECK_THROWS_WITH(write({{.name = "a", .dtype = "FLOAT"}}), doctest::Contains("'FLOAT'"));
  CHECK_THROWS_AS(write({{.name = "\xff", .dtype = "F32"}}), FormatError);
  const auto large = std::uint64_t{1} << 60;
  CHECK_THROWS_WITH(
      write({{.name = "a", .dtype = "U8", .shape = {large}}, {.name = "b", .dtype = "U8", .shape = {large, 8}}}),
      doctest::Contains("64"));
}
