// SPDX-License-Identifier: Apache-2.0
// Names were written by strangers, so all of them are escaped; an address goes into the lines at marks that no escaped
// text can hold.
#include "offline_repo/protocols/front_page.hpp"

#include <algorithm>

#include "offline_repo/protocols/header_text.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "sealift/bundle/core/html.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;

constexpr std::size_t kMaxQuery = 200;  // bytes

constexpr std::string_view kFrontStyle =
    ":root{color-scheme:light dark;--line:#8888;--soft:#8882}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:75rem;margin:0 auto;padding:1rem}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}"
    "td,th{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top;"
    "overflow-wrap:anywhere}"
    "pre{background:var(--soft);padding:.6rem;overflow-x:auto;border-radius:.3rem}"
    "input,button{font:inherit;padding:.3rem .6rem}"
    ":focus-visible{outline:3px solid Highlight;outline-offset:2px}"
    ".skip{position:absolute;left:-999rem}.skip:focus{position:static}"
    "nav{float:right}"
    "@media(max-width:40rem){nav{float:none}td,th{padding:.2rem}}";

// A name that is written from right to left does not reorder its neighbours.
std::string cell(const std::string& text) {
  return "<td><bdi>" + html_escaped(text) + "</bdi></td>";
}

std::string header_row(const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (const std::string& one : cells) out += "<th scope=\"col\">" + html_escaped(one) + "</th>";
  return out + "</tr>\n";
}

// The first header of this name in METADATA; empty without one.
std::string metadata_header(std::string_view metadata, std::string_view name) {
  for (std::size_t begin = 0; begin < metadata.size();) {
    const std::size_t end = std::min(metadata.find('\n', begin), metadata.size());
    const std::string_view line = metadata.substr(begin, end - begin);
    if (trimmed(line).empty() || line == "\r") break;
    if (line.size() > name.size() && line[name.size()] == ':' &&
        lower_case(line.substr(0, name.size())) == lower_case(name)) {
      std::string_view value = trimmed(line.substr(name.size() + 1));
      if (value.ends_with('\r')) value.remove_suffix(1);
      return std::string(value);
    }
    begin = end + 1;
  }
  return {};
}

// As the package says it: an expression (PEP 639), a classifier, or a few words.
std::string licence_of(const IndexedWheel& wheel) {
  if (std::string expression = metadata_header(wheel.metadata, "License-Expression"); !expression.empty())
    return expression.substr(0, 120);
  constexpr std::string_view kClassifier = "Classifier: License :: ";
  if (const std::size_t at = wheel.metadata.find(kClassifier); at != std::string::npos) {
    std::string text = wheel.metadata.substr(at + kClassifier.size(), 200);
    text.resize(std::min(text.find_first_of("\r\n"), text.size()));
    if (const std::size_t last = text.rfind(" :: "); last != std::string::npos) text.erase(0, last + 4);
    return text;
  }
  return metadata_header(wheel.metadata, "License").substr(0, 60);
}

std::string joined_names(const auto& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string short_digest(const bundle::Digest& digest) {
  return digest.hex().substr(0, 16) + "…";
}

std::vector<std::string> words_of(std::string_view query) {
  std::vector<std::string> words;
  const std::string lower = lower_case(query.substr(0, kMaxQuery));
  for (std::size_t begin = 0; begin < lower.size();) {
    const std::size_t end = std::min(lower.find(' ', begin), lower.size());
    if (end > begin) words.push_back(lower.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

FrontPage::FrontPage(const Catalogue& catalogue, PageLanguage language) : chinese_(language == PageLanguage::Chinese) {
  const std::string title = word("Sealift offline repository", "Sealift 离线软件仓库");
  head_ = "<!DOCTYPE html>\n<html lang=\"" + word("en", "zh") +
          "\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
          title + "</title>\n<style>" + std::string(kFrontStyle) +
          "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">" + word("Skip to the content", "跳到正文") +
          "</a>\n<header>\n<nav><a lang=\"" + word("zh", "en") + "\" href=\"?lang=" + word("zh", "en") + "\">" +
          word("中文", "English") + "</a></nav>\n<h1>" + title + "</h1>\n<p>" +
          word("Read only, straight from verified bundles: each byte is checked before it leaves.",
               "只读，直接取自已验证的包：每个字节在发出之前都经过检查。") +
          "</p>\n</header>\n<main id=\"main\">\n<form role=\"search\" method=\"get\">\n<input type=\"hidden\" "
          "name=\"lang\" value=\"" +
          word("en", "zh") + "\">\n<label for=\"q\">" + word("Search", "搜索") +
          "</label> <input id=\"q\" name=\"q\" type=\"search\" maxlength=\"" + std::to_string(kMaxQuery) +
          "\" value=\"";
  lines_ = commands(catalogue);
  if (!lines_.empty()) lines_ = "<h2 id=\"use\">" + word("Lines to paste", "可直接粘贴的命令") + "</h2>\n" + lines_;
  add_bundles(catalogue);
  add_projects(catalogue);
  add_repositories(catalogue);
  add_images(catalogue);
  add_debian_packages(catalogue);
  if (!catalogue.left_out.empty()) {
    tail_ += "<h2>" + word("Not served", "未提供的内容") + "</h2>\n<ul>\n";
    for (const std::string& line : catalogue.left_out) tail_ += "<li><bdi>" + html_escaped(line) + "</bdi></li>\n";
    tail_ += "</ul>\n";
  }
  tail_ += "</main>\n</body>\n</html>\n";
  bundle::Hasher hasher;
  for (const std::string* part : {&head_, &lines_, &tail_}) hasher.update(bundle::as_bytes(*part));
  for (const Table& table : tables_)
    for (const Row& row : table.rows) hasher.update(bundle::as_bytes(row.html));
  digest_ = hasher.finish();
}

void FrontPage::add_bundles(const Catalogue& catalogue) {
  Table table{.title = word("Bundles", "包"),
              .head = header_row({word("Name", "名称"), word("Version", "版本"), word("Channel", "通道"),
                                  word("Size", "大小"), word("Made", "制作时间"), word("Signed by", "签名者")}),
              .rows = {}};
  for (const auto& in : catalogue.sources) {
    const bundle::Manifest& manifest = in->manifest();
    std::vector<std::string> keys;
    for (const bundle::Digest& key : in->signers()) keys.push_back(short_digest(key));
    const std::string signers = word("root ", "根 ") + in->root().name + " " + std::to_string(in->root().version) +
                                word(", keys ", "，密钥 ") + joined_names(keys);
    table.rows.push_back({.words = lower_case(manifest.stem() + " " + manifest.channel),
                          .html = "<tr>" + cell(manifest.name) + cell(std::to_string(manifest.version)) +
                                  cell(manifest.channel) + cell(bundle::human_size(manifest.payload.size)) +
                                  cell(manifest.created) + cell(signers) + "</tr>\n"});
  }
  tables_.push_back(std::move(table));
}

void FrontPage::add_projects(const Catalogue& catalogue) {
  Table table{.title = word("Python packages", "Python 软件包"),
              .head = header_row(
                  {word("Name", "名称"), word("Versions", "版本"), word("Size", "大小"), word("Licence", "许可证")}),
              .rows = {}};
  for (const auto& [name, project] : catalogue.projects) {
    std::uint64_t size = 0;
    for (const auto& [file, wheel] : project.wheels) size += wheel.size;
    const std::string licence = project.wheels.empty() ? "" : licence_of(project.wheels.rbegin()->second);
    table.rows.push_back({.words = lower_case(name + " " + licence),
                          .html = "<tr><td><a href=\"simple/" + url_escaped(name) + "/\">" + html_escaped(name) +
                                  "</a></td>" + cell(joined_names(project.versions())) +
                                  cell(bundle::human_size(size)) + cell(licence.empty() ? "–" : licence) + "</tr>\n"});
  }
  tables_.push_back(std::move(table));
}

void FrontPage::add_repositories(const Catalogue& catalogue) {
  Table table{.title = word("Models and data", "模型和数据"),
              .head = header_row({word("Name on the hub", "在模型社区的名称"), word("Kind", "种类"),
                                  word("Commit", "提交"), word("Files", "文件数"), word("Size", "大小")}),
              .rows = {}};
  for (const auto& [name, repository] : catalogue.repositories)
    for (const auto& [id, commit] : repository.commits) {
      std::uint64_t size = 0;
      for (const auto& [path, file] : commit.files) size += file.size;
      const bool data = name.kind == bundle::RepositoryKind::Dataset;
      table.rows.push_back({.words = lower_case(name.id),
                            .html = "<tr>" + cell(name.id) + cell(data ? word("data", "数据") : word("model", "模型")) +
                                    cell(id) + cell(std::to_string(commit.files.size())) +
                                    cell(bundle::human_size(size)) + "</tr>\n"});
    }
  tables_.push_back(std::move(table));
}

void FrontPage::add_images(const Catalogue& catalogue) {
  Table table{
      .title = word("Container images", "容器镜像"),
      .head = header_row({word("Name", "名称"), word("Tag", "标签"), word("Size", "大小"), word("Digest", "摘要")}),
      .rows = {}};
  for (const auto& [name, images] : catalogue.images)
    for (const auto& [tag, named] : images.tags)
      table.rows.push_back({.words = lower_case(name + ":" + tag),
                            .html = "<tr>" + cell(name) + cell(tag) +
                                    cell(bundle::human_size(images.manifests.at(named.digest).image_size)) +
                                    cell("sha256:" + named.digest) + "</tr>\n"});
  tables_.push_back(std::move(table));
}

// A package's file is NAME_VERSION_ARCHITECTURE.deb.
void FrontPage::add_debian_packages(const Catalogue& catalogue) {
  Table table{.title = word("Debian packages", "Debian 软件包"),
              .head = header_row(
                  {word("Name", "名称"), word("Version", "版本"), word("Size", "大小"), word("Repository", "软件源")}),
              .rows = {}};
  for (const auto& [name, repository] : catalogue.apt)
    for (const auto& [file, served] : repository.files) {
      const std::size_t first = file.find('_'), second = file.find('_', first + 1);
      if (!file.ends_with(".deb") || second == file.npos) continue;
      table.rows.push_back({.words = lower_case(file),
                            .html = "<tr>" + cell(file.substr(0, first)) +
                                    cell(file.substr(first + 1, second - first - 1)) +
                                    cell(bundle::human_size(served.size)) + cell("apt/" + name) + "</tr>\n"});
    }
  tables_.push_back(std::move(table));
}

std::string FrontPage::filled_in(const PageAddress& address) const {
  std::string out;
  bool left_out = false;
  for (const char c : lines_) {
    if (c == kPlainMark)
      left_out = !address.plain && !left_out;
    else if (left_out)
      continue;
    else if (c == kUrlMark)
      out += html_escaped(address.url);
    else if (c == kRegistryMark)
      out += html_escaped(address.registry);
    else if (c == kHostMark)
      out += html_escaped(address.host);
    else
      out += c;
  }
  return out;
}

std::string FrontPage::text(const PageAddress& address, std::string_view query) const {
  const std::vector<std::string> words = words_of(query);
  std::string out =
      head_ + html_escaped(query.substr(0, kMaxQuery)) + "\"> <button>" + word("Find", "查找") + "</button>\n</form>\n";
  if (words.empty()) out += filled_in(address);
  std::size_t shown = 0;
  for (const Table& table : tables_) {
    std::string rows;
    for (const Row& row : table.rows)
      if (std::all_of(words.begin(), words.end(),
                      [&](const std::string& one) { return row.words.find(one) != std::string::npos; })) {
        rows += row.html;
        ++shown;
      }
    if (!rows.empty())
      out += "<h2>" + table.title + "</h2>\n<table>\n<thead>" + table.head + "</thead>\n<tbody>\n" + rows +
             "</tbody>\n</table>\n";
  }
  if (shown == 0)
    out += "<p role=\"status\">" +
           (words.empty() ? word("No bundle is served yet.", "尚未提供任何包。")
                          : word("Nothing here has these words.", "没有符合的内容。")) +
           "</p>\n";
  return out + tail_;
}

const std::string& front_page_policy() {
  static const std::string policy = "default-src 'none'; style-src 'sha256-" +
                                    bundle::to_base64(bundle::sha256(bundle::as_bytes(kFrontStyle)).bytes) +
                                    "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
  return policy;
}

}  // namespace sealift::offline_repo
