// Put before the system's libraries (LD_PRELOAD), it ends a process that wants to speak to the network: at its first
// socket of a network, or the first name that it looks up.

#include <netdb.h>
#include <sys/socket.h>

#include <cstdlib>

extern "C" int socket(int domain, int, int) {
  if (domain == AF_INET || domain == AF_INET6) std::abort();
  return -1;
}
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) { std::abort(); }
