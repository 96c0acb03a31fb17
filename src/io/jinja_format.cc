// Python's two ways to format text: "%5.2f" % values and "{:>10}".format(...). Both end in one routine that pads and signs.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

constexpr int kMaxWidth = 1 << 16, kMaxPrecision = 400;

struct Spec {
  char align = 0, sign = '-', type = 0, grouping = 0;
  bool alternate = false, zero = false;
  std::string fill = " ";
  int width = 0, precision = -1;
};

int number_at(string_view s, size_t& at, int most) {
  int n = 0;
  for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at)
    if ((n = n * 10 + (s[at] - '0')) > most) raise("a format asks for more than " + std::to_string(most) + " characters");
  return n;
}

std::string padded(std::string body, string_view sign, const Spec& s, char align) {
  const int64_t missing = s.width - int64_t(count_points(body)) - int64_t(sign.size());
  if (missing <= 0) return std::string(sign) + body;
  std::string pad;
  const int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string left, right;
  for (int64_t i = 0; i < missing; ++i) (i < before ? left : right) += s.fill;
  if (align == '=') return std::string(sign) + left + body;
  return left + std::string(sign) + body + right;
}

std::string grouped(std::string digits, char separator) {
  const size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
  return digits;
}

std::string sign_of(bool negative, char style) { return negative ? "-" : style == '-' ? "" : std::string(1, style); }

std::string integer_digits(uint64_t magnitude, char type) {
  char buffer[72];
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
  return type == 'X' ? upper(out) : out;
}

std::string real_digits(double magnitude, const Spec& s) {
  if (std::isnan(magnitude)) return "nan";
  if (std::isinf(magnitude)) return "inf";
  if (!s.type && s.precision < 0) return float_repr(magnitude);
  const int precision = s.precision < 0 ? 6 : s.precision;
  char buffer[kMaxPrecision + 400];
  const char type = s.type == '%' ? 'f' : s.type == 'n' || !s.type ? 'g' : s.type;
  const char format[] = {'%', '.', '*', type, 0};
  const char alternate[] = {'%', '#', '.', '*', type, 0};
  const int n =
      snprintf(buffer, sizeof buffer, s.alternate ? alternate : format, precision, s.type == '%' ? magnitude * 100 : magnitude);
  std::string out(buffer, size_t(n));
  if (s.type || out.find_first_of(".e") != std::string::npos) return out;
  // Without a type Python writes 20.0 as such where a digit is left for the zero, and as 2e+01 where none is.
  if (int(out.size()) < precision) return out + ".0";
  const int e = snprintf(buffer, sizeof buffer, "%.*e", std::max(precision, 1) - 1, magnitude);
  out.assign(buffer, size_t(e));
  const size_t exponent = out.find('e');
  size_t keep = exponent;
  if (out.find('.') < exponent) {
    while (out[keep - 1] == '0') --keep;
    keep -= out[keep - 1] == '.';
  }
  return out.erase(keep, exponent - keep);
}

std::string formatted_integer(int64_t v, Spec s) {
  const uint64_t magnitude = v < 0 ? 0 - uint64_t(v) : uint64_t(v);
  if (s.type == 'c') {
    if (v < 0 || v > 0x10ffff) raise("%c needs a code point");
    std::string c;
    append_point(c, uint32_t(v));
    return padded(c, "", s, s.align ? s.align : '<');
  }
  std::string digits = integer_digits(magnitude, s.type);
  if (s.precision > int(digits.size())) digits.insert(0, size_t(s.precision) - digits.size(), '0');
  if (s.grouping) digits = grouped(digits, s.grouping);
  std::string sign = sign_of(v < 0, s.sign);
  if (s.alternate && s.type && s.type != 'd') sign += std::string("0") + s.type;
  return padded(std::move(digits), sign, s, s.align ? s.align : '>');
}

std::string formatted_real(double v, const Spec& s) {
  std::string digits = real_digits(std::abs(v), s);
  if (s.grouping) digits = grouped(digits, s.grouping);
  if (s.type == '%') digits += '%';
  return padded(std::move(digits), sign_of(std::signbit(v) && !std::isnan(v), s.sign), s, s.align ? s.align : '>');
}

std::string formatted_text(string_view v, const Spec& s) {
  if (s.precision >= 0) v = v.substr(0, byte_of(v, size_t(s.precision)));
  return padded(std::string(v), "", s, s.align ? s.align : '<');
}

// ---- "%..." % values

class Values {
 public:
  Values(Interp& x, const Value& v) : x_(x), v_(v), tuple_(v.get<Sequence>()) {
    if (tuple_ && tuple_->kind != Sequence::Kind::tuple) tuple_ = nullptr;
  }
  Value next() {
    if (at_ >= (tuple_ ? tuple_->size() : 1)) raise("not enough arguments for the format");
    return tuple_ ? tuple_->at(at_++) : (++at_, v_);
  }
  Value named(const std::string& key) {
    const Dict* d = v_.get<Dict>();
    if (!d) raise("the format needs a mapping for '" + key + "'");
    const Value* found = d->find(key);
    if (!found) raise("the format's mapping has no '" + key + "'");
    named_ = true;
    x_.budget.spend(int64_t(d->entries.size()));
    return *found;
  }
  void finish() const {
    if (!named_ && !v_.get<Dict>() && at_ < (tuple_ ? tuple_->size() : 1)) raise("not all arguments were used by the format");
  }

 private:
  Interp& x_;
  const Value& v_;
  const Sequence* tuple_;
  size_t at_ = 0;
  bool named_ = false;
};

std::string percent_value(Interp& x, const Value& v, Spec s) {
  const bool zero = s.zero && s.align != '<';
  int64_t i;
  double d;
  switch (s.type) {
    case 's': return formatted_text(x.text(v), s);
    case 'r':
    case 'a': return formatted_text(repr(v, x.budget), s);
    case 'c':
      if (const Text* t = v.get<Text>()) {
        if (count_points(t->bytes) != 1) raise("%c needs one character");
        return formatted_text(t->bytes, s);
      }
      break;
    case 'd':
    case 'i':
    case 'u':
      if (const double* real = v.get<double>()) {
        if (!(std::abs(*real) < 9e18)) raise("%d needs a number that fits 64 bits");
        s.type = 'd';
        if (zero) s.align = '=', s.fill = "0";
        return formatted_integer(int64_t(*real), s);
      }
      s.type = 'd';
      break;
    case 'x':
    case 'X':
    case 'o': break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (!as_number(v, d)) raise("must be a real number, not " + type_name(v));
      if (zero) s.align = '=', s.fill = "0";
      return formatted_real(d, s);
    default: raise(std::string("unsupported format character '") + s.type + "'");
  }
  if (!as_integer(v, i)) raise(std::string("%") + s.type + " needs a number, not " + type_name(v));
  if (zero) s.align = '=', s.fill = "0";
  return formatted_integer(i, s);
}

// ---- "{...}".format()

Spec parse_spec(string_view t) {
  Spec s;
  size_t at = 0, second = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  if (!t.empty()) next_point(t, second);
  if (second > 0 && second < t.size() && is_align(t[second]))
    s.fill = std::string(t.substr(0, second)), s.align = t[second], at = second + 1;
  else if (!t.empty() && is_align(t[0]))
    s.align = t[0], at = 1;
  const auto take = [&](string_view set) { return at < t.size() && set.find(t[at]) != string_view::npos ? t[at++] : char(0); };
  if (const char c = take("+- ")) s.sign = c;
  s.alternate = take("#");
  s.zero = take("0");
  s.width = number_at(t, at, kMaxWidth);
  s.grouping = take(",_");
  if (take(".")) {
    const size_t from = at;
    s.precision = number_at(t, at, kMaxPrecision);
    if (at == from) raise("a format lacks its precision");
  }
  s.type = take("bcdeEfFgGnosxX%");
  if (at != t.size()) raise("invalid format '" + std::string(t) + "'");
  if (s.zero && !s.align) s.align = '=', s.fill = "0";
  return s;
}

std::string brace_value(Interp& x, const Value& v, string_view spec_text) {
  if (spec_text.empty()) return x.text(v);
  Spec s = parse_spec(spec_text);
  int64_t i;
  double d;
  const bool real_type = s.type && string_view("eEfFgG%").find(s.type) != string_view::npos;
  if (v.get<bool>() && !s.type) return formatted_text(x.text(v), s);
  if (as_integer(v, i) && !real_type) {
    if (s.type == 's' || s.precision >= 0) raise("invalid format '" + std::string(spec_text) + "' for an int");
    return formatted_integer(i, s);
  }
  if (as_number(v, d)) {
    if (s.type && !real_type && s.type != 'n') raise("invalid format '" + std::string(spec_text) + "' for a float");
    return formatted_real(d, s);
  }
  if (!v.get<Text>() || (s.type && s.type != 's') || s.align == '=')
    raise("invalid format '" + std::string(spec_text) + "' for '" + type_name(v) + "'");
  return formatted_text(v.get<Text>()->bytes, s);
}

// The value that a field such as "0.name[key]" names.
Value field_value(Interp& x, string_view field, const Args& args, size_t& automatic, bool& manual) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const string_view first = field.substr(0, end);
  Value v;
  const bool number = !first.empty() && all_of_kind(first, [](uint32_t c) { return c >= '0' && c <= '9'; });
  if (first.empty() || number) {
    size_t at = 0;
    const size_t index = number ? size_t(number_at(first, at, 1 << 20)) : automatic++;
    manual = manual || number;
    if (manual && automatic) raise("a format numbers all of its fields or none");
    if (index >= args.positional.size()) raise("format has no argument " + std::to_string(index));
    v = args.positional[index];
  } else {
    const auto found = std::find_if(args.named.begin(), args.named.end(), [&](const auto& a) { return a.first == first; });
    if (found == args.named.end()) raise("format has no argument '" + std::string(first) + "'");
    v = found->second;
  }
  for (field = field.substr(end); !field.empty();) {
    if (field[0] == '.') {
      const size_t stop = std::min(field.find_first_of(".[", 1), field.size());
      v = x.attribute(v, std::string(field.substr(1, stop - 1)));
      field = field.substr(stop);
    } else {
      const size_t stop = field.find(']');
      if (field[0] != '[' || stop == string_view::npos) raise("a format field is malformed");
      const string_view key = field.substr(1, stop - 1);
      int64_t index;
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
      v = x.item(v, parsed.ec == std::errc() && parsed.ptr == key.data() + key.size() ? Value(index) : Value(key));
      field = field.substr(stop + 1);
    }
  }
  return v;
}

}  // namespace

std::string percent_format(Interp& x, const std::string& format, const Value& v) {
  Values values(x, v);
  std::string out;
  const string_view f = format;
  for (size_t at = 0; at < f.size();) {
    if (f[at] != '%') {
      const size_t next = std::min(f.find('%', at), f.size());
      out += f.substr(at, next - at);
      at = next;
      continue;
    }
    Spec s;
    Value named;
    bool has_name = false;
    if (++at < f.size() && f[at] == '(') {
      const size_t close = f.find(')', at);
      if (close == string_view::npos) raise("a format's key is never closed");
      named = values.named(std::string(f.substr(at + 1, close - at - 1)));
      has_name = true;
      at = close + 1;
    }
    for (; at < f.size() && string_view("-+ 0#").find(f[at]) != string_view::npos; ++at) {
      if (f[at] == '-') s.align = '<';
      if (f[at] == '+' || (f[at] == ' ' && s.sign != '+')) s.sign = f[at];
      if (f[at] == '0') s.zero = true;
      if (f[at] == '#') s.alternate = true;
    }
    const auto size_at = [&](int most) {
      if (at >= f.size() || f[at] != '*') return number_at(f, at, most);
      ++at;
      return int(std::clamp<int64_t>(integer_argument(values.next(), "*"), 0, most));
    };
    s.width = size_at(kMaxWidth);
    if (at < f.size() && f[at] == '.') ++at, s.precision = size_at(kMaxPrecision);
    while (at < f.size() && (f[at] == 'h' || f[at] == 'l' || f[at] == 'L')) ++at;
    if (at >= f.size()) raise("the format ends inside a placeholder");
    s.type = f[at++];
    if (!s.align) s.align = '>';
    x.budget.spend(s.width + 16);
    out += s.type == '%' ? "%" : percent_value(x, has_name ? named : values.next(), s);
  }
  values.finish();
  x.budget.spend(int64_t(out.size()));
  return out;
}

std::string brace_format(Interp& x, const std::string& format, const Args& args) {
  std::string out;
  const string_view f = format;
  size_t automatic = 0;
  bool manual = false;
  for (size_t at = 0; at < f.size();) {
    const char c = f[at];
    if (c != '{' && c != '}') {
      const size_t next = std::min(f.find_first_of("{}", at), f.size());
      out += f.substr(at, next - at);
      at = next;
      continue;
    }
    if (at + 1 < f.size() && f[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    const size_t close = f.find('}', at);
    if (c == '}' || close == string_view::npos) raise("a single '" + std::string(1, c) + "' stands in a format");
    const string_view field = f.substr(at + 1, close - at - 1);
    if (field.find('{') != string_view::npos) raise("fields inside format fields are not supported");
    const size_t spec = std::min(field.find(':'), field.size());
    string_view name = field.substr(0, spec);
    const size_t conversion = name.find('!');
    const string_view how = conversion == string_view::npos ? "" : name.substr(conversion + 1);
    Value v = field_value(x, name.substr(0, conversion), args, automatic, manual);
    if (how == "r" || how == "a")
      v = repr(v, x.budget);
    else if (how == "s")
      v = x.text(v);
    else if (conversion != string_view::npos)
      raise("a format's conversion is one of !r, !s and !a");
    std::string piece = brace_value(x, v, spec < field.size() ? field.substr(spec + 1) : "");
    x.budget.spend(int64_t(piece.size()) + 16);
    out += piece;
    at = close + 1;
  }
  return out;
}

}  // namespace ridge::jinja
