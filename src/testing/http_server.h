#pragma once
// A small HTTP/1.1 server for tests, on a port of its own at 127.0.0.1. It can do what real ones do on bad days: close
// the connection in the middle of a body, ignore ranges, answer with anything.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mk::testing {

struct ServedRequest {
  std::string method;
  std::string path;                            // with the query, as it was sent
  std::map<std::string, std::string> headers;  // names in lower case
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

struct ServedResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool ranges = true;                    // answers a Range with 206 or 416
  std::optional<std::size_t> cut_after;  // bytes of the body that are sent before the connection closes
  bool no_length = false;                // the end of the connection is the end of the body
};

class HttpServer {
 public:
  using Handler = std::function<ServedResponse(const ServedRequest&)>;
  explicit HttpServer(Handler handler);  // called from several threads
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;                      // "http://127.0.0.1:PORT"
  std::vector<ServedRequest> requests() const;  // so far
  void forget_requests();

 private:
  void accept_all();
  void serve(int connection);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<ServedRequest> requests_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  std::thread acceptor_;
};

}  // namespace mk::testing
