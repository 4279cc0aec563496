// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/machine.hpp"

#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>

namespace sealift::trainer::plan {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& expected) {
  throw std::invalid_argument(name + " is '" + text.substr(0, 60) + "'; expected " + expected);
}

/// A positive number and one of `units` after it; nothing else.
double read(const std::string& name, const std::string& text, const std::map<std::string_view, double>& units,
            const std::string& expected) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const auto unit = units.find(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  if (error != std::errc() || unit == units.end() || !(number > 0) || number > 1e6) refuse(name, text, expected);
  return number * unit->second;
}

std::int64_t read_count(const std::string& text, std::string_view part) {
  std::int64_t count = 0;
  const auto* end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, count);
  if (error != std::errc() || rest != end || count < 1 || count > 100'000) {
    refuse("--machine", text, "HOSTSxCARDSxMEMORY as 2x8x80GB, or CARDSxMEMORY, with 1 to 100000 of each");
  }
  return count;
}

}  // namespace

std::int64_t read_bytes(const std::string& name, const std::string& text) {
  const auto bytes =
      read(name, text, {{"GB", 1e9}, {"GiB", 0x1p30}, {"MB", 1e6}, {"MiB", 0x1p20}, {"TB", 1e12}, {"TiB", 0x1p40}},
           "a size as 80GB, 24GiB or 512MiB");
  return static_cast<std::int64_t>(std::llround(bytes));
}

double read_rate(const std::string& name, const std::string& text) {
  return read(name, text,
              {{"Gbit", 1e9 / 8},
               {"Gbit/s", 1e9 / 8},
               {"Mbit", 1e6 / 8},
               {"GB", 1e9},
               {"GB/s", 1e9},
               {"TB/s", 1e12},
               {"MB/s", 1e6},
               {"MB", 1e6}},
              "a rate as 400Gbit or 25GB/s");
}

double read_seconds(const std::string& name, const std::string& text) {
  return read(name, text, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}, "a time as 20us or 0.5ms");
}

double read_flops(const std::string& name, const std::string& text) {
  return read(name, text, {{"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}},
              "operations per second as 125T or 125TFLOPS");
}

void read_machine(const std::string& text, Machine& machine) {
  const auto last = text.rfind('x');
  if (last == std::string::npos) refuse("--machine", text, "HOSTSxCARDSxMEMORY as 2x8x80GB, or CARDSxMEMORY as 8x80GB");
  const auto counts = std::string_view(text).substr(0, last);
  const auto first = counts.find('x');
  machine.hosts = first == std::string_view::npos ? 1 : read_count(text, counts.substr(0, first));
  machine.cards = read_count(text, first == std::string_view::npos ? counts : counts.substr(first + 1));
  machine.memory = read_bytes("--machine", text.substr(last + 1));
}

}  // namespace sealift::trainer::plan
