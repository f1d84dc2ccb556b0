#include "base/http.h"
#include "testing/testing.h"

namespace mk {
namespace {

TEST(Url, IsCutIntoItsParts) {
  const auto parts = parse_url("HTTPS://user:pass@Hub.Example:8443/a/b?c=d");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->scheme, "https");
  EXPECT_EQ(parts->host, "hub.example");
  EXPECT_EQ(parts->port, 8443);
  EXPECT_EQ(parts->path, "/a/b?c=d");
  EXPECT_EQ(parse_url("http://h")->path, "/");
  EXPECT_EQ(parse_url("http://h?q")->path, "/?q");
  EXPECT_EQ(parse_url("http://[::1]:80/")->host, "[::1]");
  for (const char* bad : {"", "h", "/a", "file:///etc/passwd", "http://", "http://:80", "http://h:0/", "http://h:x/",
                          "http://h:70000/", "http://h /", "http://h\r\nX: y/", "http://h\\@evil/"})
    EXPECT_FALSE(parse_url(bad)) << bad;
}

// What may share secrets: RFC 6454, section 5. The user part is no host.
TEST(Url, OriginsAreSchemeHostAndPort) {
  const auto same = [](std::string_view a, std::string_view b) { return parse_url(a)->same_origin(*parse_url(b)); };
  EXPECT_TRUE(same("https://hub.example/a", "https://HUB.example:443/b"));
  EXPECT_FALSE(same("https://hub.example/", "http://hub.example/"));
  EXPECT_FALSE(same("https://hub.example/", "https://cdn.hub.example/"));
  EXPECT_FALSE(same("https://hub.example/", "https://hub.example:8443/"));
  EXPECT_FALSE(same("https://hub.example/", "https://hub.example@evil.example/"));
  EXPECT_FALSE(same("https://hub.example/", "https://hub.example.evil.example/"));
}

// RFC 3986, section 5.4.1, those without dot segments.
TEST(Url, LocationsAreResolved) {
  const std::string base = "http://a/b/c/d;p?q";
  const std::pair<const char*, const char*> rows[] = {
      {"g", "http://a/b/c/g"},      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},         {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"},
      {"http://g/h", "http://g/h"}, {"/g?u=http://x", "http://a/g?u=http://x"},
  };
  for (const auto& [location, wanted] : rows) EXPECT_EQ(resolve_url(base, location), wanted) << location;
  EXPECT_EQ(resolve_url("http://a", "g"), "http://a/g");
}

TEST(Url, OtherBytesAreEncoded) {
  EXPECT_EQ(percent_encoded("a/b-c_d.e~f"), "a/b-c_d.e~f");
  EXPECT_EQ(percent_encoded("a b%?#&\xc3\xa4"), "a%20b%25%3F%23%26%C3%A4");
}

}  // namespace
}  // namespace mk
