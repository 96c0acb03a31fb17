"""The templates, conversations and snippets that jinja.py runs. Templates are the published ones of their model families, from
memory of their public form; what matters is that they use the language the way those files do."""

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather now", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Où? <\"Zürich\">"},
                                         "unit": {"type": "string", "enum": ["C", "F"], "default": "C"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
        "type": "object", "properties": {"xs": {"type": "array", "items": {"type": "number"}}, "deep": {
            "type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]}}}, "return": {"type": "number"}}},
]


def said(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "unit": "C", "n": 1.0}}}]}

CONVERSATIONS = {
    "user": {"messages": said(("user", "Hello!"))},
    "no prompt": {"messages": said(("user", "Hello!"), ("assistant", "Hi.")), "prompt": False},
    "system": {"messages": said(("system", " You are terse. \n"), ("user", "  Why?\n\n"))},
    "turns": {"messages": said(("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d\n"), ("user", "e"))},
    "unicode": {"messages": said(("user", "Grüße 👋🏽 – 你好, עולם\u00a0"), ("assistant", "\u2028ñ\u3000"), ("user", "'quo\"ted' <b>&amp;</b> {{ x }} {% y %}"))},
    "empty content": {"messages": said(("system", ""), ("user", ""), ("assistant", ""), ("user", ""))},
    "no messages": {"messages": []},
    "two users": {"messages": said(("user", "a"), ("user", "b"))},
    "assistant first": {"messages": said(("assistant", "a"), ("user", "b"))},
    "unknown role": {"messages": said(("user", "a"), ("critic", "b"))},
    "none content": {"messages": said(("user", "a"), ("assistant", None))},
    "tools": {"messages": said(("system", "S"), ("user", "Weather?")), "tools": True},
    "tool call": {"messages": [*said(("user", "Weather?")), CALL, {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": "{\"t\": 21}"}], "tools": True},
    "tool answered": {"messages": [*said(("user", "Weather?")), CALL, {"role": "tool", "tool_call_id": "abcdef123", "content": "21"}, *said(("assistant", "21 °C"), ("user", "ok"))]},
    "thinking": {"messages": said(("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c")), "variables": {"enable_thinking": False}},
    "parts": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " What? "}]}]},
}

# Variables that snippets and expressions see.
GLOBALS = {
    "s": "Hello, World", "empty": "", "uni": "Straße – ДОМ 你好 👋🏽", "padded": "  \t x y \n", "n": 7, "neg": -7, "f": 2.5, "yes": True, "no": False, "nil": None,
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "items": "shadow", "C": 3}, "nested": {"l": [{"x": [10, 20]}]},
    "people": [{"name": "Ann", "age": 30, "ok": True}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30, "ok": False}],
    "html": "<a href=\"x\">'&'</a>", "lines": "one\n\ntwo\r\nthree\n",
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 // 3
7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 10, 2 ** -1, -2 ** 2, 2 ** 3 ** 2
7 / 2, 6 / 2, 1 / 3, 1e16, 1e15, 1.5e-5, 0.0001, 123456789.123456789, 1e100, -0.0
1_000 + 0x1F + 0b101 + 0o17
1 / 0
1 % 0
0.1 + 0.2
'a' + 1
'a' * 3 ~ '-' * 0 ~ 2 * 'b'
[1] * 2 + [3]
(1,) + (2, 3)
[1] + (2,)
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x'] ~ undefined_thing
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2 != 1
1 == 1.0, 1 == true, 'a' == 'a', [1, 2] == [1, 2], {'a': 1} == {'a': 1.0}, (1,) == [1]
'a' < 'b', [1, 2] < [1, 3], 'ä' > 'z'
1 < 'a'
none < 1
'ell' in s, 'x' not in s, 1 in xs, 9 in xs, 'a' in d, 'zz' in d, 2 in {2: 3}
1 in s
1 in 5
not true or false and true, not (true and false)
'' or 'x', 'a' and 'b', 0 or none, [] or {} or 'last'
'yes' if yes else 'no', 'never' if no
'a' if no else 'b' if yes else 'c'
undefined_thing
undefined_thing.attr
undefined_thing['x']
undefined_thing + 1
undefined_thing == undefined_other, undefined_thing == '', undefined_thing is defined
undefined_thing()
d.missing
d.missing.more
nested.l[0].x[1], nested['l'][0]['x'][-1], nested.l.0.x.1
xs[5]
xs['a']
xs[-1], xs[0], s[0], s[-1], uni[0], uni[-3]
s[1:4], s[-5:], s[:-7], s[::2], s[::-1], xs[1:], xs[::-1], xs[5:], uni[8:12], uni[::-1]
xs[::0]
(1, 2, 3)[1:], (1, 2, 3)[::-1]
xs['a':]
s[undefined_thing:]
d[1:]
nil[1:]
undefined_thing[1:]
s[nil:3], xs[:nil]
'{:.3}|{:.2}|{:.4}|{:.4}|{:.1}|{:.0}|{:.3}|{:10.3}|{:<8}|{:+}'.format(2.0, 20.0, 1234.0, 12.0, 0.5, 3.0, 0.00001, 1.0, 1.5, 2.0)
d['items'], d.b, d.items() | list
{'a': 1, 'b': [1, (2,), 'x'], 'c': none, 3: {'d': ()}}
[1, 2.0, 'a', "it's", 'q"q', 'both\'"', true, none, 'tab\t', 'nl\n', '\\', 'é', '\x00', '\u2028']
('a',), (), ('a', 'b')
{'a': 1}.a, {'a': 1}['a'], {1: 'x'}[1], {'a': 1, 'a': 2}
{[1]: 2}
range(5) | list, range(2, 8, 3) | list, range(5, 0, -2) | list, range(3), range(0, 10, 3), range(0)
range(100001) | length
range(1, 2, 0)
range(5)[2], range(5)[-1], range(5) | length, 3 in range(5)
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('k', 'v')])
s | upper, s | lower, s | title, 'hELLO wORLD-foo bar' | title, 'hELLO' | capitalize, uni | upper, uni | lower
s.upper(), s.lower(), s.title(), "they're bill's".title(), "they're bill's" | title, s.swapcase(), 'ß'.upper(), 'éa'.capitalize()
padded | trim ~ '|', padded.strip() ~ '|', padded.lstrip() ~ '|', padded.rstrip() ~ '|', 'xxaxx'.strip('x'), 'xxaxx' | trim('x'), '\u3000a\xa0'.strip()
'a,b,,c'.split(','), 'a b  c '.split(), 'a,b,c'.split(',', 1), 'a b c'.rsplit(' ', 1), ''.split(), ''.split(','), ' a  b '.split(none, 1), 'a b  c'.rsplit(none, 1)
'a'.split('')
lines.splitlines(), 'a\nb'.splitlines(true), 'a\u2028b\x0bc'.splitlines()
', '.join(['a', 'b']), ''.join('abc'), '-'.join(d)
','.join([1])
s.startswith('He'), s.endswith(('x', 'ld')), s.startswith('ell', 1), s.endswith('Hell', 0, 4)
s.find('o'), s.rfind('o'), s.find('zz'), s.index('l'), uni.find('Д'), s.find('o', 5), s.count('l'), 'aaa'.count('aa'), 'abc'.count('')
s.index('zz')
s.replace('l', 'L'), s.replace('l', 'L', 1), 'aaa' | replace('a', 'b', 2), 'ab'.replace('', '-'), 12321 | replace(2, 'x')
'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-'), 'abc'.rpartition('-')
'abc'.removeprefix('a'), 'abc'.removesuffix('c'), 'abc'.removeprefix('x'), '7'.zfill(3), '-7'.zfill(4), 'a'.ljust(3, '.') ~ 'a'.rjust(3) ~ 'ab'.center(5, '*') ~ 'abc'.center(6, '*')
'abc'.isalpha(), '12'.isdigit(), 'a1'.isalnum(), ' '.isspace(), ''.isalpha(), 'AB'.isupper(), 'Ab'.islower(), 'ab1'.islower(), '1'.isupper()
'a\tb'.expandtabs(4), 'Äß'.casefold() | length
'{} {} {0}'.format(1, 2)
'{} {}'.format('a', 2), '{1}{0}'.format('a', 'b'), '{x:>5}|{y:<5}|{z:^5}'.format(x='a', y='b', z='c'), '{:.2f} {:05d} {:,} {:x} {:%}'.format(3.14159, 42, 1234567, 255, 0.25), '{{}}'.format()
'{0[0]} {1.name}'.format(xs, people[0]), '{!r} {!s}'.format('a', 'b'), '{:+d} {:e} {:g} {:08.3f} {:#x}'.format(5, 12345.678, 0.0001, -3.14159, 255)
'%s is %d and %.2f, %5d|%-5d|%05d %x %%' % ('x', 3, 2.5, 42, 42, 42, 255), '%s' % 'one', '%(a)s-%(b)d' % {'a': 'x', 'b': 2}, '%r' % 'q', '%s' % [1]
'%s %s' % 'one'
'%d' % 'x'
'%s' % (1, 2)
'%s and %s' | format('a', 1), '%(k)s' | format(k='v')
s.append('x')
xs.append(4)
d.update({'x': 1})
d.get('a'), d.get('zz'), d.get('zz', 5), d.keys() | list, d.values() | list, d.items() | list
d.keys(), d.values(), {}.items()
xs.index(1), xs.count(3), (1, 1).count(1)
xs | length, s | count, d | length, uni | length, undefined_thing | length, '' | length
5 | length
xs | first, xs | last, [] | first, s | first, '' | last, d | first
xs | sum, [] | sum, [0.5, 1] | sum, people | sum(attribute='age'), [[1], [2]] | sum(start=[])
xs | min, xs | max, words | min, words | max(case_sensitive=true), [] | min, people | max(attribute='age')
xs | sort, words | sort, words | sort(true), words | sort(case_sensitive=true), people | sort(attribute='age') | map(attribute='name') | list, people | sort(attribute='age,name', reverse=true) | map(attribute='name') | list
mixed | sort
words | unique | list, [1, 1.0, true, 2] | unique | list, words | unique(true) | list
xs | reverse | list, s | reverse, d | reverse | list
words | join, words | join(', '), xs | join('-'), people | join('/', attribute='name'), 'abc' | join('.')
words | map('upper') | list, people | map(attribute='age') | list, people | map(attribute='ok', default='?') | list, [' a ', 'b '] | map('trim') | join(','), words | map('replace', 'a', 'z') | list
words | map('nosuch') | list
xs | map | list
xs | select('odd') | list, xs | reject('odd') | list, [0, 1, '', 'a', none] | select | list, xs | select('>', 1) | list, xs | select('in', [1, 3]) | list, [1, 2, 4] | select('divisibleby', 2) | list
people | selectattr('ok') | map(attribute='name') | list, people | selectattr('ok', 'defined') | list | length, people | rejectattr('ok') | map(attribute='name') | list, people | selectattr('age', 'equalto', 30) | map(attribute='name') | list, people | rejectattr('age', 'lt', 30) | list | length
people | selectattr('age', 'nosuch') | list
d | dictsort, d | dictsort(true), d | dictsort(by='key', reverse=true), {'a': 2, 'b': 1} | dictsort(false, 'value')
d | items | list, undefined_thing | items | list
xs | items | list
people | groupby('age') | list, people | groupby('name') | map('first') | list
xs | batch(2) | list, xs | batch(2, 'f') | list, xs | slice(2) | list, xs | slice(2, 0) | list
undefined_thing | default('x'), none | default('x'), '' | d('x', true), 0 | default(5, boolean=true), d.zz | default
1.5 | int, '42' | int, ' 42 ' | int, '4_2' | int, '3.9' | int, 'x' | int, 'x' | int(5), '0x1f' | int(0, 16), 'ff' | int(base=16), true | int, none | int, '1e3' | int
'1.5' | float, 'x' | float, 'x' | float(2.0), 3 | float, '1e3' | float, 'inf' | float, true | float
undefined_thing | int
2.5 | round, 3.5 | round, 2.675 | round(2), 42 | round, 42.55 | round(1, 'floor'), 2.1 | round(0, 'ceil'), -2.5 | round, 1234.5 | round(-2), 0.5 | round | int
2.5 | round(1, 'bad')
-3 | abs, -2.5 | abs, true | abs, neg | abs
'x' | abs
html | escape, html | e | e, html | safe, html | forceescape, ('<' | safe) + '<', ('<' | e) ~ '<', 5 | e
'a\nb\n\nc' | indent, 'a\nb' | indent(2, true), 'a\n\nb' | indent(2, blank=true), 'a\nb' | indent('> ')
'foo bar baz qux' | truncate(9), 'foo bar baz qux' | truncate(9, true), 'foo bar baz qux' | truncate(11, false, '...', 0), 'short' | truncate(10)
'one two  three' | wordcount, 'a' | center(5) ~ '|', 'a b&c/d' | urlencode, {'a': 1, 'b c': 'd&'} | urlencode
5 | string ~ 1, none | string, [1] | string | length, 'abc' | list, d | list
mixed | tojson
{'a': 1.0, 'b': [1, 'é\n"\\\x01/'], 'c': none, 'd': true, 1: 2, 2.5: [], none: {}} | tojson
{'b': 1, 'a': [1, 2, {}], 'e': []} | tojson(indent=2)
{'b': 1, 'a': [1]} | tojson(sort_keys=true, separators=(',', ':')), 'é👋' | tojson(ensure_ascii=true), [1] | tojson(indent=0)
(1, 2) | tojson, 1e100 | tojson, 1e-7 | tojson, '' | tojson
undefined_thing | tojson
range(3) | tojson
{(1, 2): 3} | tojson
1 is number, 1.5 is number, true is number, '1' is number, 1 is integer, true is integer, 1.0 is float, true is boolean, 1 is boolean
s is string, xs is string, d is mapping, xs is mapping, xs is iterable, s is iterable, 5 is iterable, d is iterable, none is iterable
xs is sequence, s is sequence, d is sequence, 5 is sequence, (1,) is sequence, range(2) is sequence, d.items() is sequence, (xs | map('abs')) is sequence, undefined_thing is sequence
nil is none, none is none, 0 is none, s is defined, zz is defined, zz is undefined, nil is defined, d.a is defined, d.zz is defined, nil is not none
true is true, 1 is true, false is false, 0 is false, yes is true
4 is even, 3 is odd, 9 is divisibleby 3, 9 is divisibleby(2), 1 is eq 1, 1 is ne(2), 2 is gt 1, 1 is lessthan 2, 1 is equalto 1.0, 2 is ge 2, 2 is le 1
1 is in [1, 2], 'a' is in 'abc', 1 is not in xs
'abc' is lower, 'ABC' is upper, 'aB' is lower, range is callable, s is callable, 'upper' is filter, 'nosuch' is filter, 'odd' is test, nil is sameas none, 1 is sameas true, xs is sameas xs
1 is nosuch
s | nosuch
s is string and not s is none or false
not nil is none
1 if nil is none else 2
-xs | first
-n, +n, -f, - -n, -true
-s
'a' 'b' "c", 'it''s'
'\x41\u00e9\U0001F44B\101\n|\t|\q|\''
s.nosuch
s.nosuch()
5()
xs | join(d=',')
xs | join(sep=',')
s | upper(1)
namespace(a=1).a, namespace(a=1).zz is defined
loop is defined, caller is defined
(xs | map('string')) is defined, (xs | select('gt', 99)) | list | length, 'truthy' if xs | select('gt', 99) else 'falsy'
cycler('a', 'b').next(), joiner('|')() ~ 'x'
strftime_now('%Y-%m-%d %H:%M:%S %j %B'), strftime_now('') ~ 'x', strftime_now('%d %b %Y')
raise_exception('My own sentence: no!')
xs[0], xs[1], 'trailing comma',
[1, 2,], {'a': 1,}, (1, 2,)
1if yes else 2
{'a': {'b': {'c': [1, {'d': 2}]}}}.a.b.c[1].d
xs | sort | reverse | list | first | string | length
mixed | map('string') | join('|')
mixed | string
people[0]
people | map(attribute='name') | map('lower') | sort | join(' ')
(1, 'a') in [(1, 'a')], [1] in [[1]], none in [none], 'a' in ('a', 'b')
'%s' % none, '%s' % (none,), '%5.1f|' % 3.14159, '%+d' % 5, '%c' % 'x', '%c' % 65, '%e' % 12345.678, '%g' % 0.00001, '%o' % 8, '%X' % 255, '%#x' % 255, '%*d' % (5, 42)
9223372036854775807, -9223372036854775807 - 1
1 ** 0.5, 4 ** 0.5, 0 ** 0, 2.0 ** 3
d | length if d is mapping and d else 'none'
a.b if a is defined else 'undefined'
's' | attr('nosuch')
s | attr('upper') is callable, d | attr('b') is defined
'' is string, '' is none, not '', not [], not {}, not 0.0, not (0,)
""".strip("\n").split("\n")

SNIPPETS = [
    # Whitespace control: trim_blocks and lstrip_blocks are on.
    "a\n  {% if yes %}\nb\n  {% endif %}\nc\n", "a\n  {%+ if yes %}\nb\n  {%+ endif +%}\nc\n", "a \n {%- if yes -%} \n b \n {%- endif -%} \n c",
    "a {% if yes %} b {% endif %} c", "  {{ s }}  \n  {{- n -}}  \n  {{ n }}\n\n", "x {#- c -#} y {# d #}\n z {#+ e +#}\n w", "  {# lead #}\n  b", "{#- a #} {% if yes %}{# b #}\n{% endif %}\n.",
    "{% if yes %}\n\n{% endif %}\n\n", "\n{{ n }}\n", "{{ n }}\n\n", "a\r\n{{ n }}\r\n{% if yes %}\r\nb\r{% endif %}\r\nc\r\n", "\t{% set x = 1 %}\t{{ x }}\t{% set y = 2 %}\n{{ y }}",
    "{% raw %}{{ not }} {% parsed %} {# at all #}{% endraw %}", "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb", "a {%- raw -%} b {%- endraw -%} c", "{% raw %}x", "{%raw%}{%endraw%}|{%-  raw  -%}  y  {%-  endraw  %}\nz",
    "  {% if yes %}  {% if yes %}\n  x\n  {% endif %}  {% endif %}\n", "{{ '{{' }} {{ '%}' }} {{ \"}}\" }} {{ {'a': {'b': 1}} }}", "{{- 5 -}}{{+ 5 }}", "{% if yes -%}\n  \u3000a\n{%- endif %}", "a{{ n }}\n{{ n }}b\n\n\n",
    "{%- for x in xs -%}\n  {{ x }}\n{%- endfor -%}", "{% for x in xs %}\n  {{ x }}\n{% endfor %}", "   {%- set a = 1 +%}   \n{{ a }}", "{{ 1 }}{% if no %}\n{% endif %}\n{{ 2 }}", "{", "{ {", "{{ '}' }}}", "}}", "%}", "{%%}", "{{}}", "{# a", "{{", "{%", "a {{ b", "{% if", "#} {# #}",
    "{{ 'a\\\nb' }}",
    # If, set, scopes.
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if zz %}a{% endif %}b", "{% if xs: %}a{% endif %}", "{% if 1, %}t{% endif %}",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{{ a }}{{ b }}{{ c }}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% set (a, b), c = (1, 2), 3 %}{{ a + b + c }}", "{% set x = 1, 2 %}{{ x }}",
    "{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = i %}{% endfor %}{{ x }}", "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}", "{% for i in xs %}{% if loop.first %}{% set x = i %}{% endif %}{{ x }}.{% endfor %}",
    "{% set ns = namespace(x=0, l=[]) %}{% for i in xs %}{% set ns.x = ns.x + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.x }} {{ ns.l }} {{ ns }}", "{% set d.x = 1 %}", "{% set zz.x = 1 %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{{ ns.c }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper | trim %} a{{ n }}b {% endset %}[{{ x }}]", "{% set x | replace('a', 'b') %}aaa{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% with a = 1, b = n %}{{ a + b }}{% endwith %}{{ a }}", "{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% filter upper | replace('A', 'x') %}a{{ s }}{% endfilter %}", "{% set none = 1 %}", "{% set true = 1 %}", "{% set 1 = 1 %}", "{% print n, s %}",
    # Loops.
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}", "{% for x in zz %}a{% else %}undefined{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for c in 'añ👋' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, b in xs %}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}", "{% for x in xs if x > 9 %}a{% else %}none{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ y }}{% endfor %}{% endfor %}", "{% for x in xs %}{{ loop.cycle('odd', 'even') }} {% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% break %}{% else %}e{% endfor %}", "{% for x in xs %}{% continue %}{% else %}e{% endfor %}", "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}|{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in xs if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}", "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3}]}]}, {'v': 4}] recursive %}{{ n.v }}@{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}", "{% for x in xs %}{{ loop(xs) }}{% endfor %}",
    "{% for x in xs %}{% endfor %}{{ x }}{{ loop }}", "{% for x in xs | map('string') %}{{ x }}{{ loop.last }}{% endfor %}", "{% set g = xs | select('odd') %}{{ g | list }}{{ g | list }}", "{% for loop in xs %}{% endfor %}", "{% for x, y in [(1, 2)] if x < y %}{{ x }}{{ y }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in xs if yes else [] %}{{ x }}{% endfor %}", "{% for x in (xs if yes else []) %}{{ x }}{% endfor %}",
    "{% for m in people %}{{ loop.previtem.name if loop.previtem is defined else '-' }}<{{ m.name }}>{{ loop.nextitem.name if not loop.last }};{% endfor %}", "{% break %}", "{% for x in xs %}{% if loop.index is divisibleby 2 %}{{ x }}{% endif %}{% endfor %}", "{% for x in xs %}{{ loop.length - loop.index }}{% if not loop.last %},{% endif %}{% endfor %}",
    # Macros and calls.
    "{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='z') }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f() %}{{ late }}{% endmacro %}{% set late = 'bound' %}{{ f() }}", "{% macro f() %}{% set inner = 1 %}{{ inner }}{% endmacro %}{{ f() }}{{ inner }}", "{{ early() }}{% macro early() %}x{% endmacro %}", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f.name }} {{ f }} {{ f('<') | length }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro box(t) %}<{{ t }}:{{ caller() }}>{% endmacro %}{% call box('a') %}body{{ n }}{% endcall %}", "{% macro each(l) %}{% for x in l %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) each(xs) %}{{ i }}:{{ v }} {% endcall %}", "{% macro m() %}{{ caller is defined }}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call s %}{% endcall %}", "{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}", "{% macro m(x) %}{{ x | default('dflt') }}{% endmacro %}{{ m() }}", "{% macro m(a) -%}  {{ a }}  {%- endmacro %}|{{ m(1) }}|",
    "{% macro outer() %}{% macro inner() %}I{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% generation %}{% set z = 1 %}{{ z }}{% endgeneration %}{{ z }}", "{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% macro m(a, a) %}{{ a }}{% endmacro %}",
    # Errors.
    "{% endif %}", "{% if yes %}", "{% if yes %}{% endfor %}", "{% for x in xs %}{% endif %}", "{% nosuch %}", "{{ 1 + }}", "{{ (1 }}", "{{ [1, 2 }}", "{{ 'abc }}", "{{ a b }}", "{{ 1 2 }}", "{{ a.1b }}", "{{ a..b }}", "{{ | upper }}", "{{ a | }}", "{{ a is }}", "{{ x[] }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{{ 012 }}", "{{ ! }}", "{{ a ? b : c }}", "{{ $ }}",
    "{% set %}", "{% set x %}", "{% for %}{% endfor %}", "{% for x %}{% endfor %}", "{% for x in %}{% endfor %}", "{% macro %}{% endmacro %}", "{% include 'x' %}", "{% if no %}{{ s | nosuch }}{% endif %}ok", "{{ s | nosuch if no else 'ok' }}", "{% for x in [] %}{{ x | nosuch }}{% endfor %}", "{{ x is string is none }}", "{{ 1 == 1 == true }}", "{{ not }}", "{% else %}", "{{ 99999999999 * 1 }}",
]
