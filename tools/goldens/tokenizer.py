#!/usr/bin/env python3
"""Makes src/io/goldens/tokenizer*: a corpus, five small tokenizer.json files, and what the `tokenizers` library says about them.

    pip install tokenizers gguf
    python3 tools/goldens/tokenizer.py SmolLM2-135M-Instruct.Q4_1.gguf

The model's vocabulary is only read: its oracle is built from the GGUF's tokens and merges with Digits(individual_digits=True) before
ByteLevel, as the model's own tokenizer.json has it (a conversion that forgets the digits tokenises "DR\n\n1" differently).
The megabyte of the test is expand(corpus): the same few lines are in src/io/tokenizer_test.cc. Only hashes of its ids are stored.
"""
import json
import pathlib
import random
import sys
import unicodedata

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
OUT = HERE.parent.parent / "src/io/goldens"
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"""
          r"""\s+(?!\S)|\s+""")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
# Nothing above knows this one: it runs in PCRE2, drops what it does not match, and has a look-behind and a case-insensitive group.
CUSTOM = r"(?<=\d)[a-z]|[A-Z]?[a-z]+|[\p{Lo}\p{M}]+|\d+(?=%)|\p{N}|(?i:foo|bar)|[^\w\s]+|\s+(?!\S)|\s"
# Digits that the library's Digits (Unicode 17) knows and its regular expressions (Unicode 16) do not: no rule for us to follow.
DISPUTED = {*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7)}
SPACES = [b" ", b"\n", b"\t", b"\r\n", b"\xc2\xa0", b"\xe3\x80\x80", b"\xc2\x85"]
MASK = (1 << 64) - 1


class SplitMix:
    def __init__(self, seed):
        self.state = seed

    def __call__(self, below):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return (z ^ (z >> 31)) % below


def raw_utf8(c):
    """UTF-8 of any 21-bit number, surrogates included: those are broken UTF-8."""
    if c < 0x80:
        return bytes([c])
    if c < 0x800:
        return bytes([0xC0 | c >> 6, 0x80 | c & 63])
    if c < 0x10000:
        return bytes([0xE0 | c >> 12, 0x80 | c >> 6 & 63, 0x80 | c & 63])
    return bytes([0xF0 | c >> 18, 0x80 | c >> 12 & 63, 0x80 | c >> 6 & 63, 0x80 | c & 63])


def expand(corpus, size, seed):
    below = SplitMix(seed)
    out = bytearray()
    while len(out) < size:
        kind = below(16)
        if kind < 12:
            start = below(len(corpus))
            out += corpus[start:start + 1 + below(400)]
        elif kind == 12:
            byte = below(256)
            out += bytes([byte]) * (1 + below(20))
        elif kind == 13:
            for _ in range(1 + below(12)):
                out.append(below(256))
        elif kind == 14:
            for _ in range(1 + below(6)):
                out += raw_utf8(below(0x110000))
        else:
            for _ in range(1 + below(40)):
                out += SPACES[below(7)]
    return bytes(out[:size])


def fnv(numbers):
    h = 0xCBF29CE484222325
    for n in numbers:
        for byte in int(n).to_bytes(4, "little"):
            h = ((h ^ byte) * 0x100000001B3) & MASK
    return f"{h:016x}"


def build_corpus():
    rng = random.Random(3)
    text = (HERE / "tokenizer_texts.txt").read_text()
    parts = [text.encode(), unicodedata.normalize("NFD", text[600:3800]).encode()]
    assigned = [chr(c) for c in list(range(0x20, 0x3400)) + list(range(0xA000, 0xA500)) + list(range(0xF900, 0xFFFE)) +
                list(range(0x10000, 0x12000)) + list(range(0x1F000, 0x1FB00)) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    han = [chr(c) for c in range(0x4E00, 0x9FA5)] + [chr(c) for c in range(0xAC00, 0xD7A4)]
    words = []
    for _ in range(1500):
        base = rng.randrange(len(assigned))
        near = assigned[base:base + 40] if rng.random() < 0.7 else assigned
        words.append("".join(rng.choice(near if rng.random() < 0.8 else han) for _ in range(rng.randrange(1, 6))))
    glue = [" ", " ", " ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u3000", "", "'", "-", ", ", "1", "12345", "\u0301", "\u200d", "\u2028", "\u180e"]
    parts.append("".join(w + rng.choice(glue) for w in words).encode())
    broken = [b"\x80", b"\xbf\xbf", b"\xc0\xaf", b"\xc1\x81", b"\xc3", b"\xe2\x82", b"\xe2\x28\xa1", b"\xed\xa0\x80", b"\xed\xb0\x80",
              b"\xf0\x9f\x98", b"\xf0\x9f", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x80", b"\xff\xfe", b"\xe0\x80\xaf", b"\xf8\x88\x80\x80\x80"]
    for i, b in enumerate(broken):
        parts.append(b"cut " + b + b"x" * (i % 3) + b" here\n")
    return b"".join(parts)


NASTY = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", " \n", "\n ", " \n \n  x", "\n\n1", "DR\n\n1", "a\n\nb", "x  y", "x   y", "x \t y",
    "\u00a0", "\u00a0a", "a\u00a0b", " \u00a0 a", "\u3000\u3000漢", "\u0085a", "a\u0085\u0085b", "\u180ea", "\u200ba", "\ufeffhello", "a\u2028b\u2029c",
    "\x00", "a\x00b", "\x04\x06\x7f", "\x1b[31mred\x1b[0m", "Hello world! Café déjà vu — 123 😊", "hello", " hello", "Hello", "HELLO", "hello world",
    "I'm you're we've he'd she'll it's don't", "I'M YOU'RE WE'VE HE'D SHE'LL IT'S DON'T", "'sure 'Tis 'LLama 'Red 'VEx", "'ſ 'ſx x'ſ", "''s", "'", "' s",
    "don’t ’s", "0", "12", "123", "1234", "12345678901", "3.14159", "1,000,000", "١٢٣٤", "１２３４", "a1b22c333d4444", "Ⅷ²½①", "x² + 10⁹", "௧௨௩௰",
    "for (int i = 0; i < n; ++i) {\n\t\tx[i] += y;\n\n\n}", "    return x\n        if y:\n", "!!!\n\n???", "...\r\n", " !\n", "#include <a>\n\n", "/* ** */", "a_b-c.d/e",
    "https://example.org/a?b=c&d=%20", "👩‍👩‍👧‍👦", "🏳️‍🌈🇩🇪🇯🇵", "👍🏽 👍", "❤️", "e\u0301", "\u00e9", "\u212b \u2126 \u1e9b\u0323", "q\u0307\u0323 \u0323\u0307", "\u1112\u1161\u11ab",
    "a" + "\u0316\u0301" * 20, "가각\u1100\u1161", "שָׁלוֹם", "ｶﾞ", "ﬁﬂ", "𝒳𝔄𝟘", "\U0010ffff\U000e0001", "\ufffd", "\u0378\ufdd0", "\u1c89\U0002ebf0\U00010d40",
    "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>\n", "a <|im_end|> b", "<|im_end", "<|im_|im_end|>", "<<|im_end|>>", "<|begin_of_text|>a", "<|eot_id|><|eot_id|>",
    "<think>x</think>", "<think", "  <mask>  x", "x<mask>", "x<sep>  \n y", "solo soloist solo-x xsolo solo", "re\u0301gime", "r\u00e9gime", "<mask><sep> <mask>", "<a<ab<abc<abcd",
    "foo FOO Bar 50% 7x 12ab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababababababababababababababababababab", "the" * 30,
]
NASTY_BYTES = [b"\x80", b"\xe6\xad", b"a\xe6\xadb", b"\xf0\x9f\x98", b"\xf0\x9f\x98x", b"\xed\xa0\x80", b"\xc0\xaf", b"\xff\xfe\xfd", b"\xe2\x82\x20", b"\xf4\x90\x80\x80", b"'\xc5",
               b"<|im_end\xff|>", b"\xf0\x9f\xf0\x9f\x98\x80", b"ok \xc3\x28 ok"]


def trained(pre, size, texts, *, nfc=False, alphabet=True, dropped="", **model):
    tok = Tokenizer(models.BPE(**model))
    tok.decoder = decoders.ByteLevel()
    tok.pre_tokenizer = pre
    if nfc:
        tok.normalizer = normalizers.NFC()
    letters = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in dropped] if alphabet else []
    specials = [model["unk_token"]] if "unk_token" in model else []
    tok.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(letters), special_tokens=specials, show_progress=False))
    return tok


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**({"add_prefix_space": False, "use_regex": False} | options))


def split(pattern, **options):
    return pre_tokenizers.Split(Regex(pattern), **({"behavior": "isolated"} | options))


def build_tokenizers(texts):
    sequence = pre_tokenizers.Sequence
    llama3 = trained(sequence([split(LLAMA3), byte_level()]), 1000, texts, ignore_merges=True)
    llama3.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    bos = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B:1", special_tokens=[("<|begin_of_text|>", bos)])])

    qwen2 = trained(sequence([split(QWEN2), byte_level()]), 1000, texts, nfc=True)
    qwen2.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<a", "<abc"])
    qwen2.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False), AddedToken("re\u0301gime", normalized=True)])

    smollm = trained(sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)]), 600, texts, dropped="\u0104\u0106÷",
                     unk_token="<unk>", fuse_unk=True)
    smollm.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<sep>", rstrip=True), "<|im_end|>"])
    smollm.add_tokens([AddedToken("solo", single_word=True)])

    prefix = trained(byte_level(add_prefix_space=True, use_regex=True), 400, texts, dropped="\u0104\u0106÷")
    custom = trained(sequence([pre_tokenizers.Digits(individual_digits=False), split(CUSTOM, behavior="removed", invert=True), byte_level()]), 400, texts)
    return {"llama3": llama3, "qwen2": qwen2, "smollm": smollm, "prefix": prefix, "custom": custom}


def save(tok, path, string_merges):
    """Compact, and for some in the older form where a merge is one string."""
    data = json.loads(tok.to_str())
    if string_merges:
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    path.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def from_gguf(path):
    fields = gguf.GGUFReader(path).fields
    tokens, merges, types = (fields["tokenizer.ggml." + k].contents() for k in ("tokens", "merges", "token_type"))
    tok = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    tok.decoder = decoders.ByteLevel()
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)])
    tok.add_special_tokens([t for t, kind in zip(tokens, types) if kind == 3])
    return tok


def ids_of(tok, data, plain=False):
    tok.encode_special_tokens = plain
    ids = tok.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
    tok.encode_special_tokens = False
    return ids


def every_code_point(plane):
    """Each code point between letters, digits, spaces and itself; surrogates and disputed ones are left out."""
    out = []
    for c in range(plane << 16, (plane + 1) << 16):
        if not 0xD800 <= c < 0xE000 and c not in DISPUTED:
            out.append(f"a{chr(c)}{chr(c)}1{chr(c)} {chr(c)}'{chr(c)}\n")
    return "".join(out)


def pieces_hash(pre, text):
    return fnv(len(piece.encode()) for piece, _ in pre.pre_tokenize_str(text))


def main():
    OUT.mkdir(exist_ok=True)
    corpus = build_corpus()
    (OUT / "tokenizer_corpus.bin").write_bytes(corpus)
    texts = (HERE / "tokenizer_texts.txt").read_text().splitlines() * 2
    oracles = {}
    for name, tok in build_tokenizers(texts).items():
        save(tok, OUT / f"tokenizer_{name}.json", string_merges=name in ("smollm", "prefix"))
        oracles[name] = Tokenizer.from_file(str(OUT / f"tokenizer_{name}.json"))
    oracles["smollm2_gguf"] = from_gguf(sys.argv[1])

    mega = expand(corpus, 1 << 20, 1)
    chunks = [mega[i:i + 8192] for i in range(0, len(mega), 8192)]
    nasty = [s.encode() for s in NASTY] + NASTY_BYTES
    goldens = {"made_by": f"tokenizers {tokenizers.__version__}", "expanded": fnv(mega), "nasty": [b.hex() for b in nasty], "repaired": [
        b.decode("utf-8", "replace") for b in NASTY_BYTES], "tokenizers": {}, "pieces": {}}
    for name, tok in oracles.items():
        goldens["tokenizers"][name] = {
            "ids": [ids_of(tok, b) for b in nasty],
            "plain_ids": {str(i): ids_of(tok, b, plain=True) for i, b in enumerate(nasty) if ids_of(tok, b, plain=True) != ids_of(tok, b)},
            "decoded": fnv(tok.decode(ids_of(tok, corpus), skip_special_tokens=False).encode()),
            "chunks": [fnv(ids_of(tok, c)) for c in chunks],
            "whole": fnv(ids_of(tok, mega)),
        }
    whole = mega.decode("utf-8", "replace")
    for name, pre in {"gpt2": split(GPT2), "llama3": split(LLAMA3), "qwen2": split(QWEN2), "digits": pre_tokenizers.Digits(individual_digits=True),
                      "digit_runs": pre_tokenizers.Digits(individual_digits=False)}.items():
        goldens["pieces"][name] = {"corpus": pieces_hash(pre, whole), "planes": {str(p): pieces_hash(pre, every_code_point(p)) for p in (0, 1, 2, 3, 14)}}
    text = json.dumps(goldens, ensure_ascii=False, separators=(",", ":"))
    (OUT / "tokenizer_goldens.json").write_text(text.replace('"ids":', '\n"ids":').replace('],[', '],\n['))
    for path in sorted(OUT.glob("tokenizer*")):
        print(path.stat().st_size, path)


main()
