#include "testing/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace mk::testing {
namespace {

bool send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// The head of the next request; none where the client has gone.
std::optional<ServedRequest> next_request(int connection, std::string& buffer) {
  std::size_t end;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    char block[4096];
    const ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) return std::nullopt;
    buffer.append(block, static_cast<std::size_t>(got));
  }
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  ServedRequest request;
  const auto first = head.find(' '), second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  request.path = head.substr(first + 1, second - first - 1);
  // To a proxy the whole address is said.
  if (request.path.starts_with("http://")) request.path.erase(0, request.path.find('/', 7));
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const auto line_end = head.find("\r\n", at);
    const std::string line = head.substr(at, line_end - at);
    const auto colon = line.find(": ");
    if (colon != std::string::npos) request.headers[lower_case(line.substr(0, colon))] = line.substr(colon + 2);
    at = line_end + 2;
  }
  return request;
}

// What a range leaves of a response.
void take_range(const ServedRequest& request, ServedResponse& response) {
  const std::string range = request.header("range");
  if (!response.ranges || response.status != 200 || !range.starts_with("bytes=")) return;
  const std::size_t whole = response.body.size(), begin = std::strtoull(range.c_str() + 6, nullptr, 10);
  if (begin >= whole) {
    response.status = 416;
    response.body.clear();
    response.headers.emplace_back("Content-Range", fmt::format("bytes */{}", whole));
    return;
  }
  response.status = 206;
  response.body.erase(0, begin);
  response.headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", begin, whole - 1, whole));
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, length) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, any, &length) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<ServedRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::forget_requests() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
}

void HttpServer::accept_all() {
  for (;;) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (stopping_ || connection < 0) {
      if (connection >= 0) ::close(connection);
      return;
    }
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void HttpServer::serve(int connection) {
  std::string buffer;
  while (const auto request = next_request(connection, buffer)) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(*request);
    }
    ServedResponse response = handler_(*request);
    take_range(*request, response);
    std::string head = fmt::format("HTTP/1.1 {} -\r\n", response.status);
    if (!response.no_length) head += fmt::format("Content-Length: {}\r\n", response.body.size());
    for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
    if (!send_all(connection, head + "\r\n")) break;
    if (request->method == "HEAD") continue;
    const std::size_t sent = std::min(response.cut_after.value_or(response.body.size()), response.body.size());
    if (!send_all(connection, std::string_view(response.body).substr(0, sent))) break;
    if (response.cut_after || response.no_length) break;
  }
  ::shutdown(connection, SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  connections_.erase(std::find(connections_.begin(), connections_.end(), connection));
  ::close(connection);
}

}  // namespace mk::testing
