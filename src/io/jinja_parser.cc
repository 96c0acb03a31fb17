// See jinja_parser.h. The statements; expressions are in jinja_expressions.cc.
#include "io/jinja_parser.h"

#include <algorithm>
#include <initializer_list>

#include "io/jinja_expressions.h"

namespace ridge::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

constexpr size_t kMaxSource = 4 << 20;

class Parser : private Expressions {
 public:
  explicit Parser(const std::string& source) : Expressions(source) {}

  Nodes run() {
    Nodes body = block({});
    if (!unknown_.empty()) throw unknown_.front();
    return body;
  }

 private:
  // ---- statements
  Nodes block(Names ends) {
    Nested nested(*this);
    Nodes body;
    for (;;) {
      const Token& t = now();
      if (t.type == Type::end) {
        if (ends.size()) fail("the template ends where '" + std::string(*(ends.end() - 1)) + "' is still expected");
        return body;
      }
      ++at_;
      if (t.type == Type::data) {
        body.push_back(make(Kind::data, t.offset, t.text));
      } else if (t.type == Type::variable_begin) {
        body.push_back(make(Kind::output, t.offset, one(tuple())));
        expect(Type::variable_end, "'}}'");
      } else {
        if (now().type == Type::name && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return body;
        statement(body);
        expect(Type::block_end, "'%}'");
      }
    }
  }
  // The statements after the tag that is being read, up to one of `ends`, which is consumed and returned.
  Nodes body_until(Names ends, std::string* found = nullptr) {
    skip_op(":");
    expect(Type::block_end, "'%}'");
    Nodes body = block(ends);
    std::string end = any_name();
    if (found) *found = std::move(end);
    return body;
  }

  void statement(Nodes& body) {
    const size_t offset = now().offset;
    const std::string tag = any_name();
    if (tag == "if") return body.push_back(branch(offset));
    if (tag == "for") return body.push_back(loop(offset));
    if (tag == "set") return body.push_back(set(offset));
    if (tag == "macro") return body.push_back(macro(offset));
    if (tag == "call") return body.push_back(call_block(offset));
    if (tag == "with") return body.push_back(with(offset));
    if (tag == "filter") return body.push_back(filter_block(offset));
    if (tag == "print") return print(body, offset);
    if (tag == "generation") {
      auto n = make(Kind::scope, offset);
      n->body = body_until({"endgeneration"});
      return body.push_back(settle(std::move(n)));
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail("'" + tag + "' stands outside of a loop", offset);
      return body.push_back(make(tag == "break" ? Kind::break_loop : Kind::continue_loop, offset));
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends" || tag == "block" || tag == "autoescape")
      fail("'" + tag + "' is not supported in chat templates: they are one self-contained text", offset);
    fail("unknown tag '" + tag + "'", offset);
  }

  NodePtr branch(size_t offset) {
    ++soft_;
    auto first = make(Kind::branch, offset);
    Node* last = first.get();
    std::vector<NodePtr> chain;
    for (std::string end;;) {
      last->kids = one(tuple(false));
      last->body = body_until({"elif", "else", "endif"}, &end);
      if (end == "else") last->otherwise = body_until({"endif"});
      if (end != "elif") break;
      chain.push_back(make(Kind::branch, now().offset));
      last = chain.back().get();
    }
    --soft_;
    // An elif hangs in its predecessor's else; linked from the end so that depths are known.
    NodePtr tail;
    for (size_t i = chain.size(); i-- > 0;) {
      if (tail) chain[i]->otherwise = one(std::move(tail));
      tail = settle(std::move(chain[i]));
    }
    if (tail) first->otherwise = one(std::move(tail));
    return settle(std::move(first));
  }

  NodePtr loop(size_t offset) {
    auto n = make(Kind::loop, offset);
    NodePtr over = target("in");
    refuse_loop_name(*over);
    expect_name("in");
    NodePtr iterable = tuple(false, "recursive"), condition;
    if (skip_name("if")) condition = expression();
    n->flag = skip_name("recursive");
    n->kids = three(std::move(over), std::move(iterable), std::move(condition));
    std::string end;
    ++loops_;
    n->body = body_until({"else", "endfor"}, &end);
    --loops_;
    if (end == "else") n->otherwise = body_until({"endfor"});
    return settle(std::move(n));
  }
  void refuse_loop_name(const Node& n) const {
    if (n.kind == Kind::name && n.text == "loop") fail("the loop's target cannot be called 'loop'", n.offset);
    for (const NodePtr& kid : n.kids) refuse_loop_name(*kid);
  }

  NodePtr set(size_t offset) {
    NodePtr to;
    if (now().type == Type::name && is_op(ahead(), ".")) {
      to = make(Kind::member, now().offset, any_name());
      ++at_;
      to->names.push_back(any_name());
    } else {
      to = target("");
    }
    if (skip_op("=")) return make(Kind::set, offset, two(std::move(to), tuple()));
    auto n = make(Kind::set_block, offset, two(std::move(to), filters(nullptr)));
    n->body = body_until({"endset"});
    return settle(std::move(n));
  }

  void signature(Node& n) {
    expect_op("(");
    size_t defaults = 0;
    for (bool first = true; !is_op(now(), ")"); first = false) {
      if (!first) expect_op(",");
      std::string name = assignable(any_name());
      if (std::find(n.names.begin(), n.names.end(), name) != n.names.end())
        fail("the parameter '" + name + "' is declared twice");
      n.names.push_back(std::move(name));
      if (skip_op("="))
        n.kids.push_back(expression()), ++defaults;
      else if (defaults)
        fail("a parameter without a default follows one with a default");
    }
    ++at_;
  }

  // Reads the body of a macro or call block, noting whether it mentions caller, kwargs or varargs.
  void macro_body(Node& n, Names ends) {
    mentions_.emplace_back();
    const int loops = std::exchange(loops_, 0);
    n.body = body_until(ends);
    loops_ = loops;
    n.mentions = mentions_.back();
    mentions_.pop_back();
    for (Mentions& outer : mentions_) {  // an outer macro's body contains this one
      outer.caller |= n.mentions.caller;
      outer.kwargs |= n.mentions.kwargs;
      outer.varargs |= n.mentions.varargs;
    }
    const auto own = std::find(n.names.begin(), n.names.end(), "caller");
    const size_t defaults = n.kids.size() - (n.kind == Kind::call_block ? 1 : 0);
    if (n.mentions.caller && own != n.names.end() && size_t(n.names.end() - own) > defaults)
      fail("the special parameter 'caller' needs a default", n.offset);
  }

  NodePtr macro(size_t offset) {
    auto n = make(Kind::macro, offset, assignable(any_name()));
    signature(*n);
    macro_body(*n, {"endmacro"});
    return settle(std::move(n));
  }

  NodePtr call_block(size_t offset) {
    auto n = make(Kind::call_block, offset);
    n->kids.emplace_back();
    if (is_op(now(), "(")) signature(*n);
    n->kids[0] = expression();
    if (n->kids[0]->kind != Kind::call) fail("a call block needs a call", offset);
    macro_body(*n, {"endcall"});
    return settle(std::move(n));
  }

  NodePtr filter_block(size_t offset) {
    --at_;  // the tag's name takes the place of '|'
    auto n = make(Kind::filter_block, offset, one(filters(nullptr, true)));
    n->body = body_until({"endfilter"});
    return settle(std::move(n));
  }

  NodePtr with(size_t offset) {
    auto n = make(Kind::with, offset);
    while (now().type != Type::block_end) {
      if (!n->kids.empty()) expect_op(",");
      n->kids.push_back(target(""));
      expect_op("=");
      n->kids.push_back(expression());
    }
    n->body = body_until({"endwith"});
    return settle(std::move(n));
  }

  void print(Nodes& body, size_t offset) {
    for (bool first = true; now().type != Type::block_end; first = false) {
      if (!first) expect_op(",");
      body.push_back(make(Kind::output, offset, one(expression())));
    }
  }

  int loops_ = 0;  // around the statement at hand
};

}  // namespace

std::string located(const std::string& source, size_t offset) {
  offset = std::min(offset, source.size());
  const size_t line_start = offset ? source.rfind('\n', offset - 1) + 1 : 0;
  return "line " + std::to_string(1 + std::count(source.begin(), source.begin() + int64_t(offset), '\n')) + ", column " +
         std::to_string(offset - line_start + 1);
}

Program parse(std::string_view source) {
  if (source.size() > kMaxSource) throw SyntaxError{"the template is larger than 4 MiB", 0};
  Program program{normalised(source), {}};
  program.body = Parser(program.source).run();
  return program;
}

}  // namespace ridge::jinja
