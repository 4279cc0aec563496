// SPDX-License-Identifier: Apache-2.0
// Nothing is repaired: a head with a fault ends its connection, so what follows it is never read as a request.
#include "offline_repo/requests/request_head.hpp"

#include <algorithm>
#include <array>

#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

namespace {

// RFC 9110, 5.6.2: the characters of a name.
constexpr std::array<bool, 256> kNameCharacters = [] {
  std::array<bool, 256> all{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    all[static_cast<unsigned char>(c)] = true;
  return all;
}();

bool is_name(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return kNameCharacters[static_cast<unsigned char>(c)]; });
}

// How long the line is that `head` begins with, without its CR and LF; npos where it does not end so.
std::size_t line_of(std::string_view head) {
  const std::size_t end = head.find('\n');
  if (end == head.npos || end == 0 || head[end - 1] != '\r' || head.find('\r') != end - 1) return head.npos;
  return end - 1;
}

// Of one line without its end; `lengths` counts Content-Length.
std::string fault_of_field(std::string_view line, bool reads_only, int& lengths) {
  if (line.starts_with(' ') || line.starts_with('\t')) return "a header line is folded";
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !is_name(line.substr(0, colon))) return "a header line has no name of its own";
  if (colon != std::string_view("content-length").size() && colon != std::string_view("transfer-encoding").size())
    return {};
  const std::string name = lower_case(line.substr(0, colon));
  if (name == "transfer-encoding") return "no request here has a body, and so no Transfer-Encoding";
  if (name != "content-length") return {};
  if (++lengths > 1) return "Content-Length stands twice";
  return reads_only && trimmed(line.substr(colon + 1)) != "0" ? "GET and HEAD have no body here" : "";
}

}  // namespace

std::string fault_of_head(std::string_view head) {
  for (const char c : head)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
      return "the request's head holds a control character";
  bool first = true, reads_only = false;
  int lengths = 0;
  while (!head.empty()) {
    const std::size_t end = line_of(head);
    if (end == head.npos) return "a line does not end with CR and LF";
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (line.empty()) return first ? "the request has no first line" : head.empty() ? "" : "the head has two ends";
    if (first)
      reads_only = line.starts_with("GET ") || line.starts_with("HEAD ");
    else if (std::string fault = fault_of_field(line, reads_only, lengths); !fault.empty())
      return fault;
    first = false;
  }
  return "the request's head has no end";
}

}  // namespace sealift::offline_repo
