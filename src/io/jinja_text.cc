// See jinja_text.h. Case mapping is utf8proc's one-to-one table plus the sharp s, the only longer mapping met in practice.
#include "io/jinja_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

namespace ridge::jinja {
namespace {

using Point = uint32_t;

Point to_lower(Point p) { return p < 128 ? (p >= 'A' && p <= 'Z' ? p + 32 : p) : Point(utf8proc_tolower(int32_t(p))); }
Point to_upper(Point p) { return p < 128 ? (p >= 'a' && p <= 'z' ? p - 32 : p) : Point(utf8proc_toupper(int32_t(p))); }

// Invalid bytes travel as 0x110000 + byte: no code point, no category, and written back as the same byte.
constexpr Point kRawByte = 0x110000;

int category(Point p) { return p < kRawByte ? utf8proc_category(int32_t(p)) : UTF8PROC_CATEGORY_CN; }

bool is_letter(Point p) {
  const int c = category(p);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}
bool is_upper(Point p) { return category(p) == UTF8PROC_CATEGORY_LU; }
bool is_lower(Point p) { return category(p) == UTF8PROC_CATEGORY_LL; }

template <class Map>
std::string mapped(string_view s, Map&& map) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) {
    const Point p = next_point(s, at);
    if (p < kRawByte)
      map(p, out);
    else
      append_point(out, p);
  }
  return out;
}

void append_upper(Point p, std::string& out) {
  if (p == 0xdf)
    out += "SS";
  else
    append_point(out, to_upper(p));
}
void append_lower(Point p, std::string& out) { append_point(out, to_lower(p)); }
void append_same(Point p, std::string& out) { append_point(out, p); }
void append_title(Point p, std::string& out) {
  if (p == 0xdf)
    out += "Ss";
  else
    append_point(out, p < 128 ? to_upper(p) : Point(utf8proc_totitle(int32_t(p))));
}

size_t last_point(string_view s) {  // byte offset of the last code point of a non-empty string
  size_t at = s.size() - 1;
  for (int back = 0; back < 3 && at > 0 && (uint8_t(s[at]) & 0xc0) == 0x80; ++back) --at;
  size_t end = at;
  next_point(s, end);
  return end == s.size() ? at : s.size() - 1;
}

template <class Drop>
string_view stripped(string_view s, Sides sides, Drop&& drop) {
  while ((sides & kLeft) && !s.empty()) {
    size_t end = 0;
    const Point p = next_point(s, end);
    if (!drop(p, s.substr(0, end))) break;
    s.remove_prefix(end);
  }
  while ((sides & kRight) && !s.empty()) {
    const size_t from = last_point(s);
    size_t end = from;
    if (!drop(next_point(s, end), s.substr(from))) break;
    s = s.substr(0, from);
  }
  return s;
}

}  // namespace

uint32_t next_point(string_view s, size_t& at) {
  const uint8_t lead = uint8_t(s[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead > 0xf4 || at + size_t(more) > s.size()) return kRawByte + lead;
  Point p = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    const uint8_t next = uint8_t(s[at + size_t(i)]);
    if ((next & 0xc0) != 0x80) return kRawByte + lead;
    p = p << 6 | (next & 0x3f);
  }
  static constexpr Point least[] = {0, 0x80, 0x800, 0x10000};
  if (p < least[more] || p >= kRawByte || (p >= 0xd800 && p < 0xe000)) return kRawByte + lead;
  at += size_t(more);
  return p;
}

void append_point(std::string& out, uint32_t p) {
  if (p >= kRawByte) {
    out += char(p - kRawByte);
  } else if (p < 0x80) {
    out += char(p);
  } else if (p < 0x800) {
    out += {char(0xc0 | p >> 6), char(0x80 | (p & 0x3f))};
  } else if (p < 0x10000) {
    out += {char(0xe0 | p >> 12), char(0x80 | (p >> 6 & 0x3f)), char(0x80 | (p & 0x3f))};
  } else {
    out += {char(0xf0 | p >> 18), char(0x80 | (p >> 12 & 0x3f)), char(0x80 | (p >> 6 & 0x3f)), char(0x80 | (p & 0x3f))};
  }
}

size_t count_points(string_view s) {
  size_t n = 0;
  for (size_t at = 0; at < s.size(); ++n) next_point(s, at);
  return n;
}

size_t byte_of(string_view s, size_t point) {
  size_t at = 0;
  for (; point > 0 && at < s.size(); --point) next_point(s, at);
  return at;
}

bool is_space(uint32_t p) {
  if (p < 128) return p == ' ' || (p >= 9 && p <= 13) || (p >= 0x1c && p <= 0x1f);
  return p == 0x85 || p == 0xa0 || p == 0x1680 || (p >= 0x2000 && p <= 0x200a) || p == 0x2028 || p == 0x2029 || p == 0x202f ||
         p == 0x205f || p == 0x3000;
}

bool is_printable(uint32_t p) {
  if (p < 128) return p >= 32 && p < 127;
  const int c = category(p);
  return c != UTF8PROC_CATEGORY_CN && c < UTF8PROC_CATEGORY_ZS;
}

bool is_alpha(uint32_t p) { return is_letter(p); }
bool is_digit(uint32_t p) { return p < 128 ? p >= '0' && p <= '9' : category(p) == UTF8PROC_CATEGORY_ND; }
bool is_alnum(uint32_t p) {
  const int c = category(p);
  return is_letter(p) || c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

string_view strip(string_view s, Sides sides) {
  return stripped(s, sides, [](Point p, string_view) { return is_space(p); });
}

string_view strip(string_view s, Sides sides, string_view characters) {
  // A needle of whole bytes finds whole characters: UTF-8 never starts inside another character.
  return stripped(s, sides, [&](Point, string_view bytes) { return characters.find(bytes) != string_view::npos; });
}

std::string upper(string_view s) { return mapped(s, append_upper); }
std::string lower(string_view s) { return mapped(s, append_lower); }

std::string casefold(string_view s) {
  return mapped(s, [](Point p, std::string& out) { p == 0xdf || p == 0x1e9e ? void(out += "ss") : append_lower(p, out); });
}

std::string capitalize(string_view s) {
  bool first = true;
  return mapped(s, [&](Point p, std::string& out) { (std::exchange(first, false) ? append_title : append_lower)(p, out); });
}

std::string title(string_view s) {
  bool inside = false;
  return mapped(s, [&](Point p, std::string& out) {
    (inside ? append_lower : append_title)(p, out);
    inside = is_upper(p) || is_lower(p) || category(p) == UTF8PROC_CATEGORY_LT;
  });
}

std::string title_words(string_view s) {
  bool start = true;
  return mapped(s, [&](Point p, std::string& out) {
    (start ? append_upper : append_lower)(p, out);
    start = is_space(p) || p == '-' || p == '(' || p == '{' || p == '[' || p == '<';
  });
}

std::string swapcase(string_view s) {
  return mapped(s, [](Point p, std::string& out) {
    (is_upper(p) ? append_lower : is_lower(p) ? append_upper : append_same)(p, out);
  });
}

std::string reversed(string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const size_t from = last_point(s);
    out += s.substr(from);
    s = s.substr(0, from);
  }
  return out;
}

bool all_of_kind(string_view s, bool (*is)(uint32_t)) {
  for (size_t at = 0; at < s.size();)
    if (!is(next_point(s, at))) return false;
  return !s.empty();
}

bool is_cased(string_view s, bool upper) {
  bool found = false;
  for (size_t at = 0; at < s.size();) {
    const Point p = next_point(s, at);
    if (upper ? is_lower(p) : is_upper(p)) return false;
    found = found || (upper ? is_upper(p) : is_lower(p));
  }
  return found;
}

std::vector<string_view> split(string_view s, int64_t most) {
  std::vector<string_view> parts;
  for (s = strip(s, kLeft); !s.empty(); s = strip(s, kLeft)) {
    if (most >= 0 && int64_t(parts.size()) == most) return parts.push_back(s), parts;
    size_t end = 0;
    for (size_t at = 0; at < s.size(); end = at)
      if (is_space(next_point(s, at))) break;
    parts.push_back(s.substr(0, end));
    s.remove_prefix(end);
  }
  return parts;
}

std::vector<string_view> split(string_view s, string_view separator, int64_t most) {
  std::vector<string_view> parts;
  for (size_t at; (most < 0 || int64_t(parts.size()) < most) && (at = s.find(separator)) != string_view::npos;) {
    parts.push_back(s.substr(0, at));
    s.remove_prefix(at + separator.size());
  }
  parts.push_back(s);
  return parts;
}

std::vector<string_view> rsplit(string_view s, int64_t most) {
  std::vector<string_view> parts;
  for (s = strip(s, kRight); !s.empty(); s = strip(s, kRight)) {
    if (most >= 0 && int64_t(parts.size()) == most) {
      parts.push_back(s);
      break;
    }
    string_view head = s;
    while (!head.empty()) {
      size_t at = last_point(head);
      const size_t from = at;
      if (is_space(next_point(head, at))) break;
      head = head.substr(0, from);
    }
    parts.push_back(s.substr(head.size()));
    s = head;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<string_view> rsplit(string_view s, string_view separator, int64_t most) {
  std::vector<string_view> parts;
  for (size_t at; (most < 0 || int64_t(parts.size()) < most) && (at = s.rfind(separator)) != string_view::npos;) {
    parts.push_back(s.substr(at + separator.size()));
    s = s.substr(0, at);
  }
  parts.push_back(s);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<string_view> splitlines(string_view s, bool keep_ends) {
  std::vector<string_view> lines;
  while (!s.empty()) {
    size_t at = 0, end = s.size(), after = s.size();
    while (at < s.size()) {
      const size_t from = at;
      const Point p = next_point(s, at);
      if (!((p >= 10 && p <= 13) || (p >= 0x1c && p <= 0x1e) || p == 0x85 || p == 0x2028 || p == 0x2029)) continue;
      if (p == '\r' && at < s.size() && s[at] == '\n') ++at;
      end = from, after = at;
      break;
    }
    lines.push_back(s.substr(0, keep_ends ? after : end));
    s.remove_prefix(after);
  }
  return lines;
}

int64_t count(string_view s, string_view part) {
  if (part.empty()) return int64_t(count_points(s)) + 1;
  int64_t n = 0;
  for (size_t at = s.find(part); at != string_view::npos; at = s.find(part, at + part.size())) ++n;
  return n;
}

int64_t replaced_size(string_view s, string_view from, string_view to, int64_t most) {
  const int64_t found = count(s, from), n = most < 0 ? found : std::min(found, most);
  // Both factors are bounded by strings in memory, so the product stays far below 2^63.
  return int64_t(s.size()) + n * (int64_t(to.size()) - int64_t(from.size()));
}

std::string replace(string_view s, string_view from, string_view to, int64_t most) {
  std::string out;
  if (from.empty()) {
    size_t at = 0;
    for (; most != 0; --most) {
      out += to;
      if (at == s.size()) return out;
      const size_t begin = at;
      next_point(s, at);
      out += s.substr(begin, at - begin);
    }
    return out.append(s.substr(at));
  }
  for (size_t at; most != 0 && (at = s.find(from)) != string_view::npos; --most) {
    out.append(s.substr(0, at)).append(to);
    s.remove_prefix(at + from.size());
  }
  return out.append(s);
}

std::string quoted(string_view s) {
  const char quote = s.find('\'') != string_view::npos && s.find('"') == string_view::npos ? '"' : '\'';
  static const char digits[] = "0123456789abcdef";
  std::string out(1, quote);
  for (size_t at = 0; at < s.size();) {
    const Point p = next_point(s, at);
    if (p == Point(quote) || p == '\\') {
      out += {'\\', char(p)};
    } else if (p == '\n' || p == '\r' || p == '\t') {
      out += {'\\', p == '\n' ? 'n' : p == '\r' ? 'r' : 't'};
    } else if (is_printable(p)) {
      append_point(out, p);
    } else {
      const Point code = p >= kRawByte ? p - kRawByte : p;
      const int width = code < 0x100 ? 2 : code < 0x10000 ? 4 : 8;
      out += {'\\', width == 2 ? 'x' : width == 4 ? 'u' : 'U'};
      for (int shift = 4 * (width - 1); shift >= 0; shift -= 4) out += digits[code >> shift & 15];
    }
  }
  return out += quote;
}

std::string escape_html(string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&#34;";
    else
      out += c;
  }
  return out;
}

}  // namespace ridge::jinja
