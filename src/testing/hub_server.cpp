#include "testing/hub_server.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "testing/testing.h"

namespace mk::testing {
namespace {

ServedResponse error(int status, const std::string& code, const std::string& message = "no") {
  ServedResponse response{.status = status, .body = R"({"error": "no"})"};
  if (!code.empty()) response.headers.emplace_back("X-Error-Code", code);
  response.headers.emplace_back("X-Error-Message", message);
  return response;
}

std::string decoded(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string etag_of(const HubServerFile& file) {
  if (file.large) return sha256_hex(file.bytes);
  const TemporaryFolder folder;
  const auto written = File::open(folder.write("blob", file.bytes));
  return git_blob_hex(**written).value();
}

HubServer::HubServer()
    : storage_([this](const ServedRequest& request) { return answer_storage(request); }),
      hub_([this](const ServedRequest& request) { return answer(request); }) {}

void HubServer::put(const std::string& id, HubServerRepository repository) {
  const std::lock_guard lock(mutex_);
  repositories_[id] = std::move(repository);
}

void HubServer::add(const std::string& id, const std::string& file, std::string bytes, bool large) {
  const std::lock_guard lock(mutex_);
  repositories_[id].files[file] = {std::move(bytes), large};
}

void HubServer::commit(const std::string& id, const std::string& commit) {
  const std::lock_guard lock(mutex_);
  repositories_[id].commit = commit;
}

void HubServer::intercept(Hook hook) {
  const std::lock_guard lock(mutex_);
  hook_ = std::move(hook);
}

void HubServer::change(std::function<void(ServedResponse&)> change) {
  const std::lock_guard lock(mutex_);
  change_ = std::move(change);
}

std::vector<std::string> HubServer::asked() const {
  std::vector<std::string> lines;
  for (const ServedRequest& request : hub_.requests()) lines.push_back(request.method + " " + request.path);
  return lines;
}

std::optional<ServedResponse> HubServer::refuse(const HubServerRepository* repository, const ServedRequest& request,
                                                bool file) {
  const std::string given = request.header("authorization");
  if (!repository) return error(given.empty() ? 401 : 404, "RepoNotFound", "Repository not found");
  if (repository->token.empty() || given == "Bearer " + repository->token) return std::nullopt;
  if (!repository->gated) return error(given.empty() ? 401 : 404, "RepoNotFound", "Repository not found");
  if (!file) return std::nullopt;
  return error(given.empty() ? 401 : 403, "GatedRepo", "Access to model is restricted");
}

ServedResponse HubServer::describe(const std::string& id, const std::string& revision, bool with_content) {
  const HubServerRepository& repository = repositories_.at(id);
  if (revision != "main" && revision != repository.commit) return error(404, "RevisionNotFound", "Invalid rev id");
  Json siblings = Json::array();
  for (const auto& [name, file] : repository.files) {
    Json row = {{"rfilename", name}};
    if (with_content && repository.lists_content) {
      row["size"] = file.bytes.size();
      row["blobId"] = file.large ? std::string(40, '0') : etag_of(file);
      if (file.large) row["lfs"] = {{"sha256", etag_of(file)}, {"size", file.bytes.size()}, {"pointerSize", 130}};
    }
    siblings.push_back(std::move(row));
  }
  return {.headers = {{"Content-Type", "application/json"}},
          .body = dump_json({{"id", id}, {"sha", repository.commit}, {"siblings", siblings}})};
}

ServedResponse HubServer::resolve(const std::string& id, const std::string& revision, const std::string& name) {
  const HubServerRepository& repository = repositories_.at(id);
  if (revision != "main" && revision != repository.commit) return error(404, "RevisionNotFound", "Invalid rev id");
  const auto found = repository.files.find(name);
  if (found == repository.files.end()) {
    ServedResponse response = error(404, "EntryNotFound", "Entry not found");
    response.headers.emplace_back("X-Repo-Commit", repository.commit);
    return response;
  }
  const std::string etag = "\"" + etag_of(found->second) + "\"";
  if (!found->second.large)
    return {.headers = {{"X-Repo-Commit", repository.commit}, {"ETag", etag}}, .body = found->second.bytes};
  return {.status = 302,
          .headers = {{"X-Repo-Commit", repository.commit},
                      {"X-Linked-Etag", etag},
                      {"X-Linked-Size", std::to_string(found->second.bytes.size())},
                      {"Location", fmt::format("{}/store?id={}&file={}&signature=secret", storage_.url(), id, name)}},
          .body = "Found. Redirecting"};
}

ServedResponse HubServer::answer(const ServedRequest& request) {
  const std::lock_guard lock(mutex_);
  if (hook_)
    if (auto response = hook_(request, false)) return std::move(*response);
  const auto question = request.path.find('?');
  const std::string path = request.path.substr(0, question);
  constexpr std::string_view api = "/api/models/", at_revision = "/revision/", resolving = "/resolve/";
  const bool is_api = path.starts_with(api);
  const auto split = path.find(is_api ? at_revision : resolving);
  if (split == std::string::npos) return error(404, "");
  const std::size_t begin = is_api ? api.size() : 1;
  const std::string id = decoded(path.substr(begin, split - begin));
  const std::string rest = path.substr(split + (is_api ? at_revision : resolving).size());
  const auto found = repositories_.find(id);
  if (auto refused = refuse(found == repositories_.end() ? nullptr : &found->second, request, !is_api))
    return std::move(*refused);
  if (!found->second.moved_to.empty())
    return {.status = 307,
            .headers = {{"Location", fmt::format("{}{}{}", path.substr(0, begin), found->second.moved_to,
                                                 request.path.substr(split))}}};
  if (is_api) return describe(id, decoded(rest), request.path.find("blobs=true") != std::string::npos);
  const auto slash = rest.find('/');
  return resolve(id, decoded(rest.substr(0, slash)), decoded(rest.substr(slash + 1)));
}

ServedResponse HubServer::answer_storage(const ServedRequest& request) {
  const std::lock_guard lock(mutex_);
  if (hook_)
    if (auto response = hook_(request, true)) return std::move(*response);
  const auto id = request.path.find("id=") + 3, file = request.path.find("&file=");
  const auto end = request.path.find("&signature=");
  const std::string name = request.path.substr(file + 6, end - file - 6);
  ServedResponse response{.headers = {{"ETag", "\"of-the-storage\""}},
                          .body = repositories_.at(request.path.substr(id, file - id)).files.at(name).bytes};
  if (change_) change_(response);
  return response;
}

}  // namespace mk::testing
