// Python's str methods over UTF-8: positions count code points, white space and case follow Unicode.
// A byte that is not valid UTF-8 counts as one character and is carried through unchanged.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridge::jinja {

using std::string_view;

uint32_t next_point(string_view s, size_t& at);  // the code point at byte `at`, which moves behind it
void append_point(std::string& out, uint32_t point);
size_t count_points(string_view s);
size_t byte_of(string_view s, size_t point);  // byte offset of the n-th code point; s.size() beyond the end
bool is_space(uint32_t point);
bool is_printable(uint32_t point);

enum Sides { kLeft = 1, kRight = 2, kBoth = 3 };
string_view strip(string_view s, Sides sides);  // white space
string_view strip(string_view s, Sides sides, string_view characters);
std::string upper(string_view s);
std::string lower(string_view s);
std::string casefold(string_view s);
std::string capitalize(string_view s);
std::string title(string_view s);        // str.title: every run of letters
std::string title_words(string_view s);  // Jinja's title filter: only after blanks and brackets
std::string swapcase(string_view s);
std::string reversed(string_view s);
bool all_of_kind(string_view s, bool (*is)(uint32_t point));  // and not empty
bool is_alpha(uint32_t point);
bool is_digit(uint32_t point);
bool is_alnum(uint32_t point);
bool is_cased(string_view s, bool upper);  // str.isupper, str.islower

std::vector<string_view> split(string_view s, int64_t most);  // at runs of white space; most < 0 is no limit
std::vector<string_view> split(string_view s, string_view separator, int64_t most);
std::vector<string_view> rsplit(string_view s, int64_t most);
std::vector<string_view> rsplit(string_view s, string_view separator, int64_t most);
std::vector<string_view> splitlines(string_view s, bool keep_ends);
std::string replace(string_view s, string_view from, string_view to, int64_t most);
int64_t replaced_size(string_view s, string_view from, string_view to, int64_t most);
int64_t count(string_view s, string_view part);

std::string quoted(string_view s);  // repr of a str
std::string escape_html(string_view s);

}  // namespace ridge::jinja
