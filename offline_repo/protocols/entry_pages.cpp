// SPDX-License-Identifier: Apache-2.0
// The list is sorted by path, so a folder's files stand together, and those of a folder in it too.
#include "offline_repo/protocols/entry_pages.hpp"

#include <algorithm>

#include "offline_repo/protocols/index_pages.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

namespace {

std::string head_of(const Words& word) {
  return header_row({word("Name", "名称"), word("Size", "大小"), "SHA-256"});
}

}  // namespace

std::string bundle_folders(const EntryLists& lists, const Words& word) {
  std::string rows;
  for (const auto& [name, list] : lists) {
    std::uint64_t size = 0;
    for (const ServedFile& file : list->files) size += file.size;
    rows += "<tr>" + link_cell(url_escaped(name) + "/", name + "/") + short_cell(bundle::human_size(size)) + cell("") +
            "</tr>\n";
  }
  return page_begin(word, word("Files of bundles", "各包的文件"), "", /*switches=*/false) +
         table_of(head_of(word), rows) + page_end();
}

std::optional<std::string> folder_page(const std::string& bundle, const EntryList& list, const std::string& folder,
                                       const Words& word) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  const auto is_before = [](const ServedFile& file, const std::string& wanted) {
    return file.entry->path.text() < wanted;
  };
  std::string folders, files, last;
  for (auto it = std::lower_bound(list.files.begin(), list.files.end(), prefix, is_before); it != list.files.end();
       ++it) {
    const std::string& path = it->entry->path.text();
    if (!path.starts_with(prefix)) break;
    const std::string rest = path.substr(prefix.size()), name = rest.substr(0, rest.find('/'));
    if (name.size() == rest.size())
      files += "<tr>" + link_cell(url_escaped(name), name) + short_cell(bundle::human_size(it->size)) +
               digest_cell(it->sha256.hex()) + "</tr>\n";
    else if (name != last)
      folders += "<tr>" + link_cell(url_escaped(name) + "/", name + "/") + cell("") + cell("") + "</tr>\n";
    last = name;
  }
  if (folders.empty() && files.empty() && !folder.empty()) return std::nullopt;
  if (folder.empty()) files += "<tr>" + link_cell(kSumsFile, kSumsFile) + cell("") + cell("") + "</tr>\n";
  const std::string up = "<a href=\"../\">../</a>";
  return page_begin(word, bundle + "/" + prefix, up, /*switches=*/false) + table_of(head_of(word), folders + files) +
         page_end();
}

}  // namespace sealift::offline_repo
