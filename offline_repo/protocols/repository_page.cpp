// SPDX-License-Identifier: Apache-2.0
// The card is shown as the text that it is: what it would draw from elsewhere is not here.
#include "offline_repo/protocols/repository_page.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "offline_repo/protocols/index_pages.hpp"
#include "sealift/bundle/core/html.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;
using bundle::HubKind;

bool is_data(const bundle::HubName& name) {
  return name.kind == bundle::RepositoryKind::Dataset;
}

// With the revision, so that it gives what this page shows also when a branch has moved.
std::string command_for(const ServedRepository& repository, const HubCommit& commit, const PageAddress& address) {
  const std::string what = is_data(repository.name) ? "--repo-type dataset " : "",
                    id = html_escaped(repository.name.id);
  if (repository.name.hub == HubKind::ModelScope)
    return "MODELSCOPE_ENDPOINT=" + html_escaped(address.url) + " modelscope download " + what + id + " --revision " +
           html_escaped(commit.id);
  return "HF_HUB_OFFLINE=0 HF_ENDPOINT=" + html_escaped(address.url) + " hf download " + what + id + " --revision " +
         html_escaped(commit.id);
}

std::string revisions_of(const ServedRepository& repository, const HubCommit& commit) {
  std::string names;
  for (const auto& [revision, named] : repository.revisions)
    if (named.id == commit.id) names += (names.empty() ? "" : ", ") + revision;
  return names;
}

std::uint64_t size_of(const HubCommit& commit) {
  std::uint64_t size = 0;
  for (const auto& [path, file] : commit.files) size += file.size;
  return size;
}

std::string row_of(const std::string& name, const std::string& cells) {
  return "<tr><th scope=\"row\">" + name + "</th>" + cells + "</tr>\n";
}

std::string fact(const std::string& name, const std::string& value) {
  return value.empty() ? "" : row_of(name, cell(value));
}

// Null without one.
const std::string* card_of(const Catalogue& catalogue, const HubCommit& commit) {
  const auto file = commit.files.find(kCardFile);
  if (file == commit.files.end()) return nullptr;
  const auto card = catalogue.cards.find(file->second.sha256);
  return card != catalogue.cards.end() ? card->second.get() : nullptr;
}

// Of the bundles that a commit's files come from: each is checked for itself.
std::string bundle_facts(const Catalogue& catalogue, const HubCommit& commit, const Words& word) {
  std::map<std::string, const bundle::VerifiedBundle*> bundles;
  for (const auto& [path, file] : commit.files)
    if (file.in) bundles.emplace(file.in->manifest().stem(), file.in.get());
  std::string rows;
  for (const auto& [stem, in] : bundles) {
    rows += fact(word("In the bundle", "所在的包"), stem);
    if (const std::optional<LastCheck::Times> times = catalogue.last_check(in))
      rows += row_of(word("Last check", "最近检查"), "<td>" + check_html(*times, word) + "</td>");
  }
  return rows;
}

std::string facts(const Catalogue& catalogue, const ServedRepository& repository, const HubCommit& commit,
                  const Words& word) {
  const std::string* card = card_of(catalogue, commit);
  std::string rows =
      fact(word("Kind", "种类"), is_data(repository.name) ? word("data", "数据") : word("model", "模型"));
  rows += fact(word("Licence", "许可证"), card != nullptr ? card_value(*card, "license") : "");
  rows += row_of(word("Commit", "提交"), digest_cell(commit.id));
  rows += fact(word("Branches and tags", "分支和标签"), revisions_of(repository, commit));
  rows += fact(word("Size", "大小"), bundle::human_size(size_of(commit)) + ", " + std::to_string(commit.files.size()) +
                                         word(" files", " 个文件"));
  rows += bundle_facts(catalogue, commit, word);
  return "<table>\n<tbody>\n" + rows + "</tbody>\n</table>\n";
}

std::string other_commits(const ServedRepository& repository, const HubCommit& commit, const std::string& root,
                          const Words& word) {
  std::string rows;
  for (const auto& [id, other] : repository.commits)
    if (id != commit.id)
      rows += "<tr>" + link_cell(root + "/" + repository_address(repository.name) + "/tree/" + path_escaped(id), id) +
              cell(revisions_of(repository, other)) + short_cell(bundle::human_size(size_of(other))) + "</tr>\n";
  if (rows.empty()) return {};
  return "<h2>" + word("Other commits", "其他提交") + "</h2>\n" +
         table_of(header_row({word("Commit", "提交"), word("Branches and tags", "分支和标签"), word("Size", "大小")}),
                  rows);
}

std::string file_table(const ServedRepository& repository, const HubCommit& commit, const std::string& root,
                       const Words& word) {
  std::string rows;
  for (const auto& [path, file] : commit.files)
    rows += "<tr>" + link_cell(html_escaped(root + "/" + file_address(repository.name, commit, path)), path) +
            short_cell(bundle::human_size(file.size)) + digest_cell(file.sha256.hex()) + "</tr>\n";
  return "<h2>" + word("Files", "文件") + "</h2>\n" +
         table_of(header_row({word("Path", "路径"), word("Size", "大小"), "SHA-256"}), rows);
}

}  // namespace

std::string repository_address(const bundle::HubName& name) {
  return (is_data(name) ? "datasets/" : "") + path_escaped(name.id);
}

std::string file_address(const bundle::HubName& name, const HubCommit& commit, const std::string& path) {
  if (name.hub == HubKind::ModelScope)
    return std::string("api/v1/") + (is_data(name) ? "datasets/" : "models/") + path_escaped(name.id) +
           "/repo?Revision=" + url_escaped(commit.id) + "&FilePath=" + url_escaped(path);
  return repository_address(name) + "/resolve/" + path_escaped(commit.id) + "/" + path_escaped(path);
}

std::string repository_page(const Catalogue& catalogue, const ServedRepository& repository, const HubCommit& commit,
                            const PageAddress& address, const std::string& root, const Words& word) {
  const std::string home = "<a href=\"" + html_escaped(root + "/") + "\">" +
                           word("All that this repository has", "本仓库的全部内容") + "</a>";
  std::string out = page_begin(word, repository.name.id, home, /*switches=*/true);
  out += lines_of(command_for(repository, commit, address));
  out += facts(catalogue, repository, commit, word);
  out += other_commits(repository, commit, root, word);
  out += file_table(repository, commit, root, word);
  if (const std::string* card = card_of(catalogue, commit))
    out += "<h2>" + word("Card", "说明卡") + "</h2>\n<pre class=\"card\" tabindex=\"0\">" +
           html_escaped(card_text(*card)) + "</pre>\n";
  return out + page_end();
}

}  // namespace sealift::offline_repo
