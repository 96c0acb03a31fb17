#include "app/rival.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/interrupt.h"
#include "io/json.h"

namespace ridge {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLongestLine = 1 << 20;  // an answer is a hundred bytes

// The nearest folder tools/rivals at or above `from`; empty where there is none.
fs::path rivals_above(const fs::path& from) {
  std::error_code e;
  for (fs::path p = from; !p.empty(); p = p.parent_path()) {
    if (fs::is_directory(p / "tools/rivals", e)) return p / "tools/rivals";
    if (p == p.parent_path()) break;
  }
  return {};
}

std::string list_rivals(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code e;
  for (const auto& file : fs::directory_iterator(folder, e))
    if (const std::string s = file.path().stem().string(); s.starts_with("rival_") && file.path().extension() == ".py")
      names.push_back(s.substr(strlen("rival_")));
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::string> Rival::find_script(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return access(name.c_str(), R_OK) == 0
               ? Result<std::string>(name)
               : failed(fmt::format("the rival's script {} cannot be read: {}.", name, strerror(errno)));
  std::error_code e;
  fs::path folder = rivals_above(fs::current_path(e));
  if (folder.empty()) folder = rivals_above(fs::read_symlink("/proc/self/exe", e).parent_path());
  if (folder.empty())
    return failed(
        "the rivals' scripts are in tools/rivals of Ridgeline's sources, which is not above this folder; run it there.");
  std::string stem = name;
  std::replace(stem.begin(), stem.end(), '.', '_');
  const fs::path script = folder / ("rival_" + stem + ".py");
  if (!fs::is_regular_file(script, e))
    return failed(fmt::format("there is no rival \"{}\"; {} has {}.", name, folder.string(), list_rivals(folder)));
  return script.string();
}

Result<std::unique_ptr<Rival>> Rival::start(const std::string& name, const Start& start) {
  const Result<std::string> script = find_script(name);
  if (!script) return script.status();
  std::unique_ptr<Rival> r(new Rival(name.substr(name.rfind('/') + 1)));
  if (Status s = r->spawn(start.python, *script); !s.ok()) return s;
  const Result<Json> ready = r->ask(
      Json::object({{"model", start.model}, {"threads", start.threads}, {"context", start.context}, {"vocab", start.vocab}}));
  if (!ready) return ready.status();
  r->version_ = ready->get_string("version");
  if (r->version_.empty()) return failed(fmt::format("{}: its first answer has no version.", name));
  return r;
}

// In a process group of its own: Ctrl-C is ours to act on. What it has to say apart from answers is not shown.
Status Rival::spawn(const std::string& python, const std::string& script) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(fmt::format("{}: no channel to it: {}.", name_, strerror(errno)));
  channel_ = ends[0];
  command_ = python + " " + script;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  char* words[] = {const_cast<char*>(python.c_str()), const_cast<char*>(script.c_str()), nullptr};
  const int error = posix_spawnp(&pid_, python.c_str(), &files, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error == 0) return {};
  pid_ = -1;
  return failed(
      fmt::format("{} cannot be started for {}: {}; name a Python with --rival-python.", python, name_, strerror(error)));
}

Rival::~Rival() {
  if (channel_ >= 0) close(channel_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);  // it may be in the middle of a long prompt, and holds nothing that could be lost
  waitpid(pid_, nullptr, 0);
}

Status Rival::ended() {
  int how = 0;
  if (pid_ >= 0 && waitpid(pid_, &how, 0) == pid_) pid_ = -1;
  return failed(fmt::format("{} ended with {} {} in place of an answer; run `{}` by hand to see why.", name_,
                            WIFSIGNALED(how) ? "signal" : "code", WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how), command_));
}

Result<std::string> Rival::read_line() {
  size_t end;
  while ((end = unread_.find('\n')) == std::string::npos) {
    char buffer[4096];
    const ssize_t n = read_or_interrupt(channel_, buffer, sizeof buffer);
    if (interrupted()) return interrupted(fmt::format("interrupted while {} was at work.", name_));
    if (n <= 0) return ended();
    unread_.append(buffer, size_t(n));
    if (unread_.size() > kLongestLine) return failed(fmt::format("{}: its answer is longer than a megabyte.", name_));
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

Result<Json> Rival::ask(const Json& question) {
  const std::string line = to_text(question) + "\n";
  if (send(channel_, line.data(), line.size(), MSG_NOSIGNAL) != ssize_t(line.size())) return ended();
  const Result<std::string> text = read_line();
  if (!text) return text.status();
  Result<Json> answer = parse_json(*text, name_ + "'s answer", kRequestJson);
  if (answer && answer->find("error")) return failed(fmt::format("{}: {}.", name_, answer->get_string("error")));
  return answer;
}

Result<std::vector<Rival::Timing>> Rival::time(int64_t prompt, int64_t tokens, int64_t depth) {
  const Result<Json> answer = ask(Json::object({{"prompt", prompt}, {"tokens", tokens}, {"depth", depth}}));
  if (!answer) return answer.status();
  std::vector<Timing> timings;
  for (const Json::Member& m : (*answer)["seconds"].members())
    if (const double s = m.value.number().value_or(0); s > 0) timings.push_back({m.key, s});
  if (timings.empty()) return failed(fmt::format("{}: its answer has no seconds above 0.", name_));
  return timings;
}

double Rival::cpu_seconds() const {
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace ridge
