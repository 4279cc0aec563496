// SPDX-License-Identifier: Apache-2.0
// Four values of generation.json.
// See own_bundle.hpp. The record lists every entry of the bundle, so it is read as a stream and nothing else is kept;
// a malformed record ends in a text, not in a failed training.
#include "trainer/own_bundle.hpp"

#include "sealift/bundle/core/fields.hpp"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <sys/auxv.h>

namespace sealift::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr std::uintmax_t kMaxRecord = std::uintmax_t{128} << 20;  // bytes
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 53;

/// The values of the outermost object's keys; what lies deeper only passes by.
class Outermost : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<std::string> name, identity;
  std::optional<std::uint64_t> version, generation;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    return keep("version", version, value) && keep("generation", generation, value);
  }
  bool string(string_t& value) override { return keep("name", name, value) && keep("identity", identity, value); }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = value;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  /// False for a key that stands twice: readers would differ.
  template <class Value>
  bool keep(const char* key, std::optional<Value>& kept, const Value& value) {
    if (depth_ != 1 || key_ != key) return true;
    if (kept) return false;
    kept = value;
    return true;
  }

  std::int64_t depth_ = 0;
  std::string key_;
};

bool is_identity(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json unreadable(const std::string& why) {
  return "unreadable: generation.json " + why;
}

}  // namespace

// The kernel's word, since a launcher may have changed the folder and argv. A bare host may not have /proc mounted;
// then it is the path that the kernel was given.
fs::path own_root() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  const auto path = error ? fs::absolute(reinterpret_cast<const char*>(getauxval(AT_EXECFN))) : program;
  return path.parent_path().parent_path();
}

Json bundle_at(const fs::path& root) {
  const auto file = root / "generation.json";
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return "none";
  if (!fs::is_regular_file(status)) return unreadable("is no file");
  const auto size = fs::file_size(file, error);
  if (error || size > kMaxRecord) return unreadable("is too large, or cannot be looked at");
  std::ifstream in(file, std::ios::binary);
  if (!in) return unreadable("cannot be opened");
  Outermost found;
  if (!nlohmann::json::sax_parse(in, &found)) return unreadable("is not the installer's JSON");
  const bool whole = found.name && bundle::is_plain_name(*found.name) && found.identity &&
                     is_identity(*found.identity) && found.version && *found.version < kMaxNumber && found.generation &&
                     *found.generation < kMaxNumber;
  if (!whole) return unreadable("does not say name, version, identity and generation");
  return {{"name", *found.name},
          {"version", *found.version},
          {"identity", *found.identity},
          {"generation", *found.generation}};
}

const Json& own_bundle() {
  static const Json bundle = bundle_at(own_root());
  return bundle;
}

}  // namespace sealift::trainer
