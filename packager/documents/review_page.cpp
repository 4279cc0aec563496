// SPDX-License-Identifier: Apache-2.0
// Page -> HTML and text; see review_page.hpp.
#include "packager/documents/review_page.hpp"

#include "bundle/core/foreign_text.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::packager {

namespace {

using bundle::html_escaped;

constexpr std::string_view kStyle =
    "body{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{border:1px solid #999;padding:.2em .5em;text-align:left;vertical-align:top;overflow-wrap:anywhere}";

// <bdi>: a name that is written from right to left does not reorder its neighbours.
std::string row_html(const std::vector<std::string>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const std::string& cell : cells)
    out.append("<").append(tag).append("><bdi>").append(html_escaped(cell)).append("</bdi></").append(tag).append(">");
  return out + "</tr>\n";
}

std::string row_text(const std::vector<std::string>& cells) {
  std::string out;
  for (const std::string& cell : cells) out.append("  ").append(cell.empty() ? "-" : bundle::one_line(cell));
  return out + "\n";
}

}  // namespace

std::string page_html(const Page& page) {
  // The one style is allowed by its digest; nothing else is, so nothing in a name can act.
  const std::string style = bundle::to_base64(bundle::sha256(bundle::as_bytes(kStyle)).bytes);
  std::string out = "<!DOCTYPE html>\n<html lang=\"" + page.language +
                    "\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" +
                    style + "'; base-uri 'none'; form-action 'none'\">\n<title>" + html_escaped(page.title) +
                    "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<h1>" +
                    html_escaped(page.title) + "</h1>\n<p>" + html_escaped(page.note) + "</p>\n";
  for (const PageSection& section : page.sections) {
    out += "<h2>" + html_escaped(section.title) + "</h2>\n<table>\n";
    if (!section.header.empty()) out += row_html(section.header, "th");
    for (const std::vector<std::string>& row : section.rows) out += row_html(row, "td");
    out += "</table>\n";
  }
  return out + "</body>\n</html>\n";
}

std::string page_text(const Page& page) {
  std::string out = page.title + "\n\n" + page.note + "\n";
  for (const PageSection& section : page.sections) {
    out += "\n" + section.title + "\n";
    if (!section.header.empty()) out += row_text(section.header);
    for (const std::vector<std::string>& row : section.rows) out += row_text(row);
  }
  return out;
}

}  // namespace sealift::packager
