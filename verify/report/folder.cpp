// SPDX-License-Identifier: Apache-2.0
// Writes and reads the report's folder.
// See folder.hpp.
// A report is bounded in bytes, values and depth before it is a value: it may come from another site.
#include "verify/report/folder.hpp"

#include "bundle/core/json_object.hpp"
#include "verify/verdict/json.hpp"

#include <sealift/strict_json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw std::invalid_argument("cannot write " + file.string() + ": " + std::strerror(errno));
}

Verdict verdict_of(const std::string& text, const std::string& where) {
  try {
    return verdict_from(parse_strict_json(text, {.max_depth = 16, .max_values = 5'000'000, .integers_only = false}));
  } catch (const StrictJsonError& error) {
    bundle::refuse_json(where, std::string("it is no report: ") + error.what(),
                        bundle::SafePath::printable(error.got()));
  } catch (const bundle::Error& error) {
    throw error.within(where);
  }
}

}  // namespace

void write_report(const Verdict& verdict, const fs::path& folder) {
  // What a child said may be no UTF-8, which JSON cannot hold.
  const auto json = to_json(verdict).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  auto pages = pages_of(verdict_of(json, "report.json"));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const bool is_json = kReportFiles[i] == std::string("report.json");
    write_file(folder / kReportFiles[i], is_json ? json : pages[i]);
  }
}

void remove_report(const fs::path& folder) {
  for (const auto* name : kReportFiles) {
    std::error_code error;
    fs::remove(folder / name, error);
    if (error) throw std::invalid_argument("cannot remove " + (folder / name).string() + ": " + error.message());
  }
}

std::string read_bounded(const fs::path& file, std::uintmax_t most) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) throw std::invalid_argument(file.string() + " is no file");
  const auto size = fs::file_size(file, error);
  if (error) throw std::invalid_argument(file.string() + " cannot be read: " + error.message());
  if (size > most) {
    throw std::invalid_argument(file.string() + " has " + std::to_string(size) + " bytes; at most " +
                                std::to_string(most) + " are read");
  }
  std::string text(size, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in || static_cast<std::uintmax_t>(in.gcount()) != size || in.peek() != std::ifstream::traits_type::eof()) {
    throw std::invalid_argument(file.string() + " cannot be read, or it changed while it was read");
  }
  return text;
}

Verdict read_report(const fs::path& file) {
  return verdict_of(read_bounded(file), file.string());
}

std::array<std::string, kReportFiles.size()> pages_of(const Verdict& verdict) {
  return {html_page(verdict, Language::English), "", text_page(verdict, Language::English),
          html_page(verdict, Language::Chinese), text_page(verdict, Language::Chinese)};
}

}  // namespace sealift::verify
