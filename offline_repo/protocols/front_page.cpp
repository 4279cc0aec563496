// SPDX-License-Identifier: Apache-2.0
// Names were written by strangers, so all of them are escaped; an address goes into the lines at marks that no escaped
// text can hold.
#include "offline_repo/protocols/front_page.hpp"

#include <algorithm>

#include "offline_repo/protocols/header_text.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/protocols/metadata_headers.hpp"
#include "offline_repo/protocols/page_frame.hpp"
#include "offline_repo/protocols/repository_page.hpp"
#include "sealift/bundle/core/html.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;

constexpr std::size_t kMaxQuery = 200;  // bytes

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

// `check`: HTML, for the last check.
std::string filled_in(const std::string& text, const PageAddress& address, const std::string& check) {
  std::string out;
  bool left_out = false;
  for (const char c : text) {
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
    else if (c == kHomeMark)
      out += address.home;
    else if (c == kCheckMark)
      out += check;
    else
      out += c;
  }
  return out;
}

}  // namespace

FrontPage::FrontPage(const Catalogue& catalogue, PageLanguage language) : word_(language) {
  head_ = page_begin(word_, word_("Sealift offline repository", "Sealift 离线软件仓库"),
                     word_("Read only, straight from verified bundles: each byte is checked before it leaves.",
                           "只读，直接取自校验过的包：每个字节在发出之前都经过核对。"),
                     /*switches=*/true);
  head_ += gaps_of(catalogue);
  head_ += "<form role=\"search\" method=\"get\">\n<input type=\"hidden\" name=\"lang\" value=\"" + word_("en", "zh") +
           "\">\n<label for=\"q\">" + word_("Search", "搜索") +
           "</label> <input id=\"q\" name=\"q\" type=\"search\" maxlength=\"" + std::to_string(kMaxQuery) +
           "\" value=\"";
  lines_ = commands(catalogue);
  if (!lines_.empty()) lines_ = "<h2 id=\"use\">" + word_("Lines to paste", "可直接粘贴的命令") + "</h2>\n" + lines_;
  add_bundles(catalogue);
  add_kept(catalogue);
  add_projects(catalogue);
  add_repositories(catalogue);
  add_images(catalogue);
  add_debian_packages(catalogue);
  if (!catalogue.left_out.empty()) {
    tail_ += "<h2>" + word_("Not served", "未提供的内容") + "</h2>\n<ul>\n";
    for (const InBoth& line : catalogue.left_out) tail_ += "<li><bdi>" + html_escaped(word_(line)) + "</bdi></li>\n";
    tail_ += "</ul>\n";
  }
  tail_ += page_end();
}

// What the site lacks, before anything else.
std::string FrontPage::gaps_of(const Catalogue& catalogue) const {
  std::string out;
  for (const InBoth& line : catalogue.around.gaps) out += "<li><bdi>" + html_escaped(word_(line)) + "</bdi></li>\n";
  if (out.empty()) return out;
  return "<div class=\"gap\" role=\"alert\">\n<h2>" + word_("Not served at present", "目前未提供") + "</h2>\n<ul>\n" +
         out + "</ul>\n</div>\n";
}

void FrontPage::add_bundles(const Catalogue& catalogue) {
  Table table{
      .title = word_("Bundles", "包"),
      .head = header_row({word_("Bundle", "包"), word_("Channel", "通道"), word_("Size", "大小"),
                          word_("Made", "制作时间"), word_("Last check", "最近检查"), word_("Signed by", "签名者"),
                          word_("Digest, to compare with paper", "摘要（与纸质记录比对）"), word_("Files", "文件")}),
      .rows = {}};
  for (std::size_t i = 0; i < catalogue.sources.size(); ++i) {
    const auto& in = catalogue.sources[i];
    const bundle::Manifest& manifest = in->manifest();
    std::vector<std::string> keys;
    for (const bundle::Digest& key : in->signers()) keys.push_back(short_digest(key));
    const std::string signers = word_("root ", "根 ") + in->root().name + " " + std::to_string(in->root().version) +
                                word_(", keys ", "，密钥 ") + joined_names(keys);
    const std::string address = std::string(1, kHomeMark) + "b/" + url_escaped(manifest.stem()) + "/";
    table.rows.push_back(
        {.words = lower_case(manifest.stem() + " " + manifest.channel),
         .html = "<tr>" + link_cell(address, manifest.stem()) + cell(manifest.channel) +
                 short_cell(bundle::human_size(manifest.payload.size)) + short_cell(manifest.created) + "<td>" +
                 std::string(1, kCheckMark) + "</td>" + cell(signers) + digest_cell("sha256:" + in->identity().hex()) +
                 link_cell(address + "entries/" + url_escaped(manifest.name) + "/", word_("files", "文件")) + "</tr>\n",
         .check = catalogue.checks[i]});
  }
  tables_.push_back(std::move(table));
}

void FrontPage::add_kept(const Catalogue& catalogue) {
  Table table{.title = word_("Other versions that are kept", "保留的其他版本"),
              .head = header_row({word_("Bundle", "包"), word_("Channel", "通道"),
                                  word_("Why it is not current", "为何不是当前版本")}),
              .rows = {}};
  for (const KeptVersion& kept : catalogue.around.kept)
    table.rows.push_back(
        {.words = lower_case(kept.stem + " " + kept.channel),
         .html = "<tr>" + link_cell(std::string(1, kHomeMark) + "b/" + url_escaped(kept.stem) + "/", kept.stem) +
                 cell(kept.channel) + cell(word_(kept.why)) + "</tr>\n"});
  tables_.push_back(std::move(table));
}

void FrontPage::add_projects(const Catalogue& catalogue) {
  Table table{.title = word_("Python packages", "Python 软件包"),
              .head = header_row({word_("Name", "名称"), word_("Versions", "版本"), word_("Size", "大小"),
                                  word_("Licence", "许可证")}),
              .rows = {}};
  for (const auto& [name, project] : catalogue.projects) {
    std::uint64_t size = 0;
    for (const auto& [file, wheel] : project.wheels) size += wheel.size;
    const std::string licence = project.wheels.empty() ? "" : licence_of(project.wheels.rbegin()->second);
    table.rows.push_back({.words = lower_case(name + " " + licence),
                          .html = "<tr><td><a href=\"simple/" + url_escaped(name) + "/\">" + html_escaped(name) +
                                  "</a></td>" + cell(joined_names(project.versions())) +
                                  short_cell(bundle::human_size(size)) + cell(licence.empty() ? "–" : licence) +
                                  "</tr>\n"});
  }
  tables_.push_back(std::move(table));
}

void FrontPage::add_repositories(const Catalogue& catalogue) {
  Table table{.title = word_("Models and data", "模型和数据"),
              .head = header_row({word_("Name on the hub", "在 hub 上的名称"), word_("Kind", "种类"),
                                  word_("Commit", "提交"), word_("Files", "文件数"), word_("Size", "大小")}),
              .rows = {}};
  for (const auto& [name, repository] : catalogue.repositories)
    for (const auto& [id, commit] : repository.commits) {
      std::uint64_t size = 0;
      for (const auto& [path, file] : commit.files) size += file.size;
      const bool data = name.kind == bundle::RepositoryKind::Dataset;
      table.rows.push_back({.words = lower_case(name.id),
                            .html = "<tr>" + link_cell(repository_address(name), name.id) +
                                    cell(data ? word_("data", "数据") : word_("model", "模型")) + digest_cell(id) +
                                    cell(std::to_string(commit.files.size())) + short_cell(bundle::human_size(size)) +
                                    "</tr>\n"});
    }
  tables_.push_back(std::move(table));
}

void FrontPage::add_images(const Catalogue& catalogue) {
  Table table{
      .title = word_("Container images", "容器镜像"),
      .head = header_row({word_("Name", "名称"), word_("Tag", "标签"), word_("Size", "大小"), word_("Digest", "摘要")}),
      .rows = {}};
  for (const auto& [name, images] : catalogue.images)
    for (const auto& [tag, named] : images.tags)
      table.rows.push_back({.words = lower_case(name + ":" + tag),
                            .html = "<tr>" + link_cell(path_escaped(name), name) + cell(tag) +
                                    short_cell(bundle::human_size(images.manifests.at(named.digest).image_size)) +
                                    digest_cell("sha256:" + named.digest) + "</tr>\n"});
  tables_.push_back(std::move(table));
}

// A package's file is NAME_VERSION_ARCHITECTURE.deb.
void FrontPage::add_debian_packages(const Catalogue& catalogue) {
  Table table{.title = word_("Debian packages", "Debian 软件包"),
              .head = header_row({word_("Name", "名称"), word_("Version", "版本"), word_("Size", "大小"),
                                  word_("Repository", "软件源")}),
              .rows = {}};
  for (const auto& [name, repository] : catalogue.apt)
    for (const auto& [file, served] : repository.files) {
      const std::size_t first = file.find('_'), second = file.find('_', first + 1);
      if (!file.ends_with(".deb") || second == file.npos) continue;
      table.rows.push_back({.words = lower_case(file),
                            .html = "<tr>" + cell(file.substr(0, first)) +
                                    cell(file.substr(first + 1, second - first - 1)) +
                                    short_cell(bundle::human_size(served.size)) + cell("apt/" + name) + "</tr>\n"});
    }
  tables_.push_back(std::move(table));
}

std::string FrontPage::row_of(const Row& row, const PageAddress& address) const {
  return filled_in(row.html, address, row.check ? check_html(row.check->times(), word_) : std::string());
}

std::string FrontPage::text(const PageAddress& address, std::string_view query) const {
  const std::vector<std::string> words = words_of(query);
  std::string out = head_ + html_escaped(query.substr(0, kMaxQuery)) + "\"> <button>" + word_("Find", "查找") +
                    "</button>\n</form>\n";
  if (words.empty()) out += filled_in(lines_, address, {});
  std::size_t shown = 0;
  for (const Table& table : tables_) {
    std::string rows;
    for (const Row& row : table.rows)
      if (std::all_of(words.begin(), words.end(),
                      [&](const std::string& one) { return row.words.find(one) != std::string::npos; })) {
        rows += row_of(row, address);
        ++shown;
      }
    if (!rows.empty()) out += "<h2>" + table.title + "</h2>\n" + table_of(table.head, rows);
  }
  if (shown == 0)
    out += "<p role=\"status\">" +
           (words.empty() ? word_("No bundle is served yet.", "尚未提供任何包。")
                          : word_("Nothing here has these words.", "这里没有含这些词的内容。")) +
           "</p>\n";
  return out + tail_;
}

}  // namespace sealift::offline_repo
