// SPDX-License-Identifier: Apache-2.0
// The target of a request, "/simple/torch/?format=json": split first, then decoded segment by segment, so that an
// escaped slash never separates. Hostile text; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::offline_repo {

struct Target {
  std::vector<std::string> segments;  // decoded; a trailing slash gives an empty last one
  std::string query;                  // not decoded
};

// The segments from `from` up to `to`, with slashes between them.
std::string joined(const std::vector<std::string>& segments, std::size_t from, std::size_t to);

// `text` as it was sent, also in absolute form ("http://host/path"). Nothing for a malformed escape, a control
// character, or anything but a path.
std::optional<Target> parse_target(std::string_view text);

// "/c/NAME/..." or "/b/NAME/...": the address of a channel's view or of a bundle's, if there is one of that name.
// Clients of registries put names behind /v2/, so theirs is "/v2/c/NAME/...".
struct ViewTarget {
  char kind;              // 'c' or 'b'
  std::string_view name;  // as it was sent, not decoded
  std::string_view rest;  // from the slash behind it; empty where there is none
  bool registry = false;  // it began with /v2
};
std::optional<ViewTarget> parse_view_target(std::string_view target);

// The value of ?format=, decoded; a '+' stays a plus, since media types have one. "malformed" where it cannot be
// decoded.
std::string requested_format(std::string_view query);

// The values of `key` in a query or a form ("paths=a&paths=b"), decoded, a '+' as a space; malformed ones are left out.
std::vector<std::string> form_values(std::string_view form, std::string_view key);
// The first of them, or `otherwise`.
std::string form_value(std::string_view form, std::string_view key, std::string_view otherwise = {});
// Whether that is "true", "True" or "1".
bool form_flag(std::string_view form, std::string_view key);

}  // namespace sealift::offline_repo
