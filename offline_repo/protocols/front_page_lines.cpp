// SPDX-License-Identifier: Apache-2.0
// The lines to paste of the front page, for each client whose things are here.
#include "offline_repo/protocols/front_page.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::html_escaped;

std::string first_name(const auto& map, const char* otherwise) {
  return map.empty() ? otherwise : map.begin()->first;
}

}  // namespace

// With a name that is here, where there is one, so that a line works as it stands.
std::string FrontPage::commands(const Catalogue& catalogue) const {
  const std::string url(1, kUrlMark), registry(1, kRegistryMark);
  const auto plain = [](const std::string& text) { return kPlainMark + text + kPlainMark; };
  const std::string host(1, kHostMark);
  std::string out;
  const auto add = [&](const std::string& title, const std::string& text) {
    out += "<h3>" + html_escaped(title) + "</h3>\n<pre tabindex=\"0\">" + text + "</pre>\n";
  };
  const std::string package = html_escaped(first_name(catalogue.projects, "PACKAGE"));
  if (!catalogue.projects.empty()) {
    const std::string trusted = plain(" --trusted-host " + host);
    add("pip", "pip install --index-url " + url + "/simple/" + trusted + " " + package);
    add("uv", "uv pip install --default-index " + url + "/simple/ " + package);
    if (requirements_of(catalogue).why_not.empty())
      add("pip -r", "pip install --no-deps --index-url " + url + "/simple/" + trusted + " -r " + url +
                        "/wheels/requirements.txt");
  }
  for (const bundle::HubKind hub : {bundle::HubKind::HuggingFace, bundle::HubKind::ModelScope})
    for (const auto& [name, repository] : catalogue.repositories) {
      if (name.hub != hub) continue;
      const bool data = name.kind == bundle::RepositoryKind::Dataset;
      if (hub == bundle::HubKind::HuggingFace)
        add("Hugging Face", "HF_HUB_OFFLINE=0 HF_ENDPOINT=" + url + " hf download " +
                                (data ? "--repo-type dataset " : "") + html_escaped(name.id));
      else
        add("ModelScope", "MODELSCOPE_ENDPOINT=" + url + " modelscope download " +
                              (data ? "--repo-type dataset " : "") + html_escaped(name.id));
      break;
    }
  if (!catalogue.apt.empty()) {
    const auto& [name, repository] = *catalogue.apt.begin();
    const std::string label = html_escaped(name), source = url + "/apt/" + label,
                      key = "/etc/apt/keyrings/" + label + ".asc";
    const bool has_key = repository.files.contains(kAptKey);
    add("apt", (has_key ? "curl -o " + key + " " + source + "/" + kAptKey + "\n" : "") + "echo 'deb [" +
                   (has_key ? "signed-by=" + key : "trusted=yes") + "] " + source +
                   " ./' &gt; /etc/apt/sources.list.d/" + label + ".list");
  }
  if (!catalogue.images.empty()) {
    const auto& [name, images] = *catalogue.images.begin();
    const std::string image = registry + "/" + html_escaped(name + ":" + first_name(images.tags, "TAG"));
    add("Docker", plain("# " +
                        word_("Docker takes plain HTTP where /etc/docker/daemon.json has",
                              "使用明文 HTTP 时，/etc/docker/daemon.json 中须有") +
                        " {&quot;insecure-registries&quot;: [&quot;" + host + "&quot;]}\n") +
                      "docker pull " + image);
    add("podman", "podman pull" + plain(" --tls-verify=false") + " " + image);
    add("skopeo",
        "skopeo copy" + plain(" --src-tls-verify=false") + " docker://" + image + " oci:images:" + html_escaped(name));
  }
  if (!catalogue.rpms.empty()) {
    const auto& [name, repository] = *catalogue.rpms.begin();
    const std::string place = url + "/rpm/" + html_escaped(name), set = " --setopt=sealift.";
    const bool packages = repository.files.contains(kRpmKeys), index = repository.files.contains(kRpmIndexKey);
    std::string check = set + "gpgcheck=" + (packages ? "1" : "0") + (index ? set + "repo_gpgcheck=1" : "");
    if (packages || index) check += set + "gpgkey=";
    if (packages) check += place + "/" + kRpmKeys;
    if (index) check += (packages ? "," : "") + place + "/" + kRpmIndexKey;
    add("dnf", "dnf --disablerepo='*' --repofrompath=sealift," + place + check + " install PACKAGE");
  }
  if (!catalogue.artifacts.empty()) {
    const auto& [name, versions] = *catalogue.artifacts.begin();
    add(word_("The bundle itself", "包本身"), "oras pull" + plain(" --plain-http") + " " + registry + "/" +
                                                  html_escaped(name + ":" + first_name(versions, "VERSION")));
  }
  return out;
}

}  // namespace sealift::offline_repo
