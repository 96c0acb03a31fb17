#!/usr/bin/env python3
"""Makes src/model/goldens/tiny_*: three tiny random models as HF folders in float64, odd sizes on purpose, with what PyTorch
computes from them over a packed batch: logits, loss, the gradient of every parameter, and the losses of 20 AdamW steps.

Each folder: config.json, model.safetensors (f64), expected.safetensors. Needs torch, transformers, safetensors.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = pathlib.Path(__file__).resolve().parents[2] / "src/model/goldens"
LENGTHS = [9, 5, 1, 12]
STEPS, ADAMW = 20, dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)

MODELS = {
    "tiny_llama3": (LlamaForCausalLM, LlamaConfig(
        vocab_size=61, hidden_size=40, intermediate_size=37, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=1,
        max_position_embeddings=128, rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=16))),
    "tiny_qwen3": (Qwen3ForCausalLM, Qwen3Config(
        vocab_size=67, hidden_size=24, intermediate_size=50, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "tiny_qwen2": (Qwen2ForCausalLM, Qwen2Config(
        vocab_size=53, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=False, use_sliding_window=False,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=16))),
}


def batch(vocab):
    g = torch.Generator().manual_seed(11)
    ids = torch.randint(0, vocab, (sum(LENGTHS),), generator=g)
    targets = torch.randint(0, vocab, (sum(LENGTHS),), generator=g)
    targets[[3, 8, 13]] = -1                                   # no loss there
    weights = torch.rand(sum(LENGTHS), generator=g, dtype=torch.float64)
    weights[targets < 0] = 0
    return ids, targets, weights / weights.sum()


def run(model, ids, targets, weights):
    logits = torch.cat([model(part[None]).logits[0] for part in ids.split(LENGTHS)])
    keep = targets >= 0
    loss = (torch.nn.functional.cross_entropy(logits[keep], targets[keep], reduction="none") * weights[keep]).sum()
    return logits, loss


def main():
    torch.set_default_dtype(torch.float64)
    for name, (cls, config) in MODELS.items():
        torch.manual_seed(5)
        config._attn_implementation = "eager"
        model = cls(config).double().eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                p.add_(0.25 * torch.randn_like(p) if p.ndim == 1 else 2 * p)   # norms and biases that matter, weights that are not tiny
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**config.to_diff_dict(), "architectures": [cls.__name__],
            "tie_word_embeddings": config.tie_word_embeddings, "dtype": "float64"}, indent=1) + "\n")
        params = dict(model.named_parameters())
        save_file({k: p.detach().clone() for k, p in params.items()}, str(folder / "model.safetensors"))
        ids, targets, weights = batch(config.vocab_size)
        logits, loss = run(model, ids, targets, weights)
        loss.backward()
        expected = {"ids": ids.int(), "targets": targets.int(), "weights": weights, "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
                    "logits": logits.detach().clone(), "loss": loss.detach()[None].clone()}
        expected |= {"grad." + k: p.grad.clone() for k, p in params.items()}
        optimizer = torch.optim.AdamW(params.values(), **ADAMW)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            _, loss = run(model, ids, targets, weights)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        expected["losses"] = torch.tensor(losses)
        save_file(expected, str(folder / "expected.safetensors"))
        print(name, sum(p.numel() for p in params.values()), losses[0], losses[-1])


if __name__ == "__main__":
    main()
