// SPDX-License-Identifier: Apache-2.0
#include "offline_repo/protocols/image_page.hpp"

#include <optional>

#include "sealift/bundle/core/html.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::offline_repo {

using bundle::html_escaped;

std::string image_page(const Catalogue& catalogue, const std::string& name, const ImageRepository& image,
                       const PageAddress& address, const std::string& root, const Words& word) {
  const std::string home = "<a href=\"" + html_escaped(root + "/") + "\">" +
                           word("All that this repository has", "本仓库的全部内容") + "</a>";
  std::string out = page_begin(word, name, home, /*switches=*/true), lines, rows;
  for (const auto& [tag, named] : image.tags) {
    const ServedManifest& manifest = image.manifests.at(named.digest);
    lines += "podman pull " + std::string(address.plain ? "--tls-verify=false " : "") +
             html_escaped(address.registry + "/" + name + ":" + tag) + "\n";
    const bundle::VerifiedBundle* in = manifest.file.in.get();
    const std::optional<LastCheck::Times> times = catalogue.last_check(in);
    rows += "<tr>" + cell(tag) + short_cell(bundle::human_size(manifest.image_size)) +
            digest_cell("sha256:" + named.digest) + cell(manifest.media_type) +
            cell(in != nullptr ? in->manifest().stem() : "") + "<td>" + (times ? check_html(*times, word) : "") +
            "</td></tr>\n";
  }
  out += lines_of(lines);
  out += table_of(header_row({word("Tag", "标签"), word("Size", "大小"), word("Digest", "摘要"), word("Type", "类型"),
                              word("In the bundle", "所在的包"), word("Last check", "最近检查")}),
                  rows);
  return out + page_end();
}

}  // namespace sealift::offline_repo
