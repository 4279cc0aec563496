// SPDX-License-Identifier: Apache-2.0
// One style sheet in the page itself, which the policy names by its digest.
#include "offline_repo/protocols/page_frame.hpp"

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;

constexpr std::string_view kStyle =
    ":root{color-scheme:light dark;--line:#8888;--soft:#8882}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:75rem;margin:0 auto;padding:1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;margin:.5rem 0 1.5rem}"
    "td,th{border-bottom:1px solid var(--line);padding:.3rem "
    ".6rem;text-align:left;vertical-align:top;word-break:keep-all}"
    "td.short,td>a,time{white-space:nowrap}"
    "td.digest{overflow-wrap:anywhere;min-width:12rem;font-family:monospace}"
    "pre{background:var(--soft);padding:.6rem;overflow-x:auto;border-radius:.3rem}"
    "pre.card{white-space:pre-wrap;overflow-wrap:anywhere}"
    ".gap{border-left:.3rem solid #c60;padding:.3rem .8rem;margin-bottom:1rem;background:var(--soft);"
    "overflow-wrap:anywhere}"
    "input,button{font:inherit;padding:.3rem .6rem}"
    ":focus-visible{outline:3px solid Highlight;outline-offset:2px}"
    ".skip{position:absolute;left:-999rem}.skip:focus{position:static}"
    "nav{float:right}"
    "@media(max-width:40rem){nav{float:none}td,th{padding:.2rem}"
    "td>a{display:inline-block;min-width:6.5rem;white-space:normal;overflow-wrap:anywhere}}";

}  // namespace

std::string page_begin(const Words& word, const std::string& title, const std::string& lead, bool switches) {
  const std::string other = word("zh", "en");
  std::string out = "<!DOCTYPE html>\n<html lang=\"" + word("en", "zh") +
                    "\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<title>" +
                    html_escaped(title) + "</title>\n<style>" + std::string(kStyle) +
                    "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">" +
                    word("Skip to the content", "跳到正文") + "</a>\n<header>\n";
  if (switches)
    out += "<nav><a lang=\"" + other + "\" href=\"?lang=" + other + "\">" + word("中文", "English") + "</a></nav>\n";
  out += "<h1><bdi>" + html_escaped(title) + "</bdi></h1>\n";
  if (!lead.empty()) out += "<p>" + lead + "</p>\n";
  return out + "</header>\n<main id=\"main\">\n";
}

std::string page_end() {
  return "</main>\n</body>\n</html>\n";
}

std::string header_row(const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (const std::string& one : cells) out += "<th scope=\"col\">" + html_escaped(one) + "</th>";
  return out + "</tr>\n";
}

std::string cell(const std::string& text) {
  return "<td><bdi>" + html_escaped(text) + "</bdi></td>";
}

std::string digest_cell(const std::string& digest) {
  return "<td class=\"digest\">" + html_escaped(digest) + "</td>";
}

std::string short_cell(const std::string& text) {
  return "<td class=\"short\"><bdi>" + html_escaped(text) + "</bdi></td>";
}

std::string check_html(const LastCheck::Times& times, const Words& word) {
  const auto at = [](const std::string& time) { return "<time>" + time + "</time>"; };
  std::string html;
  if (!times.read.empty()) html = at(times.read) + word(" (each byte)", "（全部字节）");
  if (times.verified.empty()) return html;
  return html + (html.empty() ? "" : "<br>") + at(times.verified) +
         word(" (seal, chunk list, sizes)", "（封签、摘要表、大小）");
}

std::string link_cell(const std::string& address, const std::string& text) {
  return "<td><a href=\"" + address + "\"><bdi>" + html_escaped(text) + "</bdi></a></td>";
}

std::string table_of(const std::string& head, const std::string& rows) {
  return "<table>\n<thead>" + head + "</thead>\n<tbody>\n" + rows + "</tbody>\n</table>\n";
}

std::string lines_of(const std::string& html) {
  return "<pre tabindex=\"0\">" + html + "</pre>\n";
}

const std::string& page_policy() {
  static const std::string policy = "default-src 'none'; style-src 'sha256-" +
                                    bundle::to_base64(bundle::sha256(bundle::as_bytes(kStyle)).bytes) +
                                    "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
  return policy;
}

}  // namespace sealift::offline_repo
