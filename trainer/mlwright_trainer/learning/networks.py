"""Policy, frozen reference and critic: transformers models that answer in response tokens.

Parameters that learn are float32; with another dtype the forward pass runs under autocast. Dropout is off,
so the same tokens always get the same probabilities (a ratio of 1 before the first step).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mlwright_api.modelspec import ALL_LINEAR
from mlwright_api.trainingrun import ModelSpec, TrainingRunSpec
from torch import Tensor, nn

from mlwright_trainer.errors import UserError
from mlwright_trainer.learning.losses import entropy_of
from mlwright_trainer.learning.packing import Packed, seeded
from mlwright_trainer.learning.parallel import Workers, whole

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAPTER = "default"


class TokenOutputs(NamedTuple):
    """Per response token [B, T]: log-probability after temperature (nats) and entropy; the hidden state that
    predicted it [B, T, H], without gradient, where asked for. Zero where the mask is 0."""

    logprobs: Tensor
    entropies: Tensor
    hidden: Tensor | None


def dtype_of(model: ModelSpec) -> torch.dtype:
    """The dtype of the forward pass; raises UserError for one that cannot be trained in."""
    if model.dtype not in DTYPES:
        raise UserError(f"model.dtype: {model.dtype} is for inference only; train in float32 or bfloat16")
    return DTYPES[model.dtype]


class CausalPolicy:
    """A causal language model (with or without LoRA) seen as a policy over response tokens."""

    def __init__(self, model: nn.Module, *, temperature: float, dtype: torch.dtype) -> None:
        self.model, self.temperature, self.dtype = model, temperature, dtype
        self.model.eval()

    def outputs(
        self, packed: Packed, *, hidden: bool = False, entropy_gradient: bool = False
    ) -> TokenOutputs:
        """Log-probabilities and entropies of the response tokens of a micro-batch."""
        first = int(packed.positions.min())
        last = int(packed.positions.max())
        window = torch.arange(first, last + 1, device=packed.tokens.device)
        with self._autocast():
            out = self.model(
                input_ids=packed.tokens, use_cache=False, output_hidden_states=hidden, logits_to_keep=window
            )
        log_p = torch.log_softmax(out.logits.float() / self.temperature, dim=-1)
        targets = packed.tokens[:, first + 1 : last + 2]
        logprobs = log_p.gather(-1, targets[..., None]).squeeze(-1)
        with nullcontext() if entropy_gradient else torch.no_grad():
            entropies = entropy_of(log_p)
        offsets = packed.positions - first
        states = _at(out.hidden_states[-1].detach().float(), packed.positions) if hidden else None
        return TokenOutputs(
            logprobs.gather(1, offsets) * packed.mask, entropies.gather(1, offsets) * packed.mask, states
        )

    def parameters(self) -> list[nn.Parameter]:
        """Those that learn."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def state(self) -> dict[str, Tensor]:
        """The parameters that learn, by name; for checkpoints."""
        return {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}

    def restore(self, state: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(state[name])

    def _autocast(self) -> AbstractContextManager[object]:
        device = next(self.model.parameters()).device.type
        return torch.autocast(device, dtype=self.dtype, enabled=self.dtype != torch.float32)


class Critic(nn.Module, ABC):
    """Values of response tokens: V_t is that of the state before token t was drawn."""

    needs_hidden: bool

    @abstractmethod
    def forward(self, packed: Packed, hidden: Tensor | None) -> Tensor:
        """[B, T] in float32; `hidden` are the policy's detached states where `needs_hidden`."""


class HiddenCritic(Critic):
    """A linear value head on the policy's detached hidden states: nearly free, cannot disturb the policy."""

    needs_hidden = True

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.head = _zero_head(hidden_size)

    def forward(self, packed: Packed, hidden: Tensor | None) -> Tensor:
        if hidden is None:
            raise ValueError("a critic on hidden states needs them")
        values: Tensor = self.head(hidden).squeeze(-1)
        return values * packed.mask


class SeparateCritic(Critic):
    """A network of its own, from the same initial weights, with a value head that starts at 0."""

    needs_hidden = False

    def __init__(self, body: nn.Module, hidden_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.body, self.head, self.dtype = body, _zero_head(hidden_size), dtype
        self.eval()

    def forward(self, packed: Packed, hidden: Tensor | None) -> Tensor:
        del hidden
        kind = packed.tokens.device.type
        with torch.autocast(kind, dtype=self.dtype, enabled=self.dtype != torch.float32):
            states = self.body(input_ids=packed.tokens, use_cache=False).last_hidden_state
        values: Tensor = self.head(_at(states.float(), packed.positions)).squeeze(-1)
        return values * packed.mask


def load_policy(spec: TrainingRunSpec, initial: Path, *, workers: Workers) -> CausalPolicy:
    """The policy at the initial weights, in float32, LoRA added where the run asks for it."""
    model = _load_causal(initial, torch.float32, workers.device)
    layers = _layers(model)
    if spec.model.lora is not None:
        model = _with_lora(model, spec, purpose="policy")
    workers.split(model, layers)
    return CausalPolicy(model, temperature=spec.sampling.temperature, dtype=dtype_of(spec.model))


def load_reference(
    spec: TrainingRunSpec, initial: Path, policy: CausalPolicy, *, workers: Workers
) -> Reference:
    """The frozen initial policy; with LoRA the same network without its adapter, so no second copy."""
    if spec.model.lora is not None:
        return Reference(policy, adapter=True)
    dtype = dtype_of(spec.model)
    model = _load_causal(initial, dtype, workers.device).requires_grad_(False)
    workers.split(model, _layers(model))
    return Reference(CausalPolicy(model, temperature=spec.sampling.temperature, dtype=dtype), adapter=False)


class Reference:
    """Log-probabilities under the initial weights, never with a gradient."""

    def __init__(self, policy: CausalPolicy, *, adapter: bool) -> None:
        self._policy, self._adapter = policy, adapter

    @torch.no_grad()
    def logprobs(self, packed: Packed) -> Tensor:
        """[B, T], 0 where the mask is."""
        with self._without_adapter():
            return self._policy.outputs(packed).logprobs

    @contextmanager
    def _without_adapter(self) -> Iterator[None]:
        model: Any = self._policy.model
        with model.disable_adapter() if self._adapter else nullcontext():
            yield


def load_critic(spec: TrainingRunSpec, initial: Path, *, workers: Workers) -> Critic:
    """The critic that the run asks for, at its start."""
    from transformers import AutoConfig, AutoModel

    size = int(AutoConfig.from_pretrained(initial).get_text_config().hidden_size)
    if spec.algorithm.detach_critic:
        critic: Critic = HiddenCritic(size).to(workers.device)
        workers.split(critic)
        return critic
    body = AutoModel.from_pretrained(initial, dtype=torch.float32)
    layers = _layers(body)
    if spec.model.lora is not None:
        body = _with_lora(body, spec, purpose="critic")
    critic = SeparateCritic(body, size, dtype_of(spec.model)).to(workers.device)
    workers.split(critic, layers)
    return critic


def merged_state(model: Any) -> dict[str, Tensor]:
    """The state of an ordinary model: LoRA's products added to copies of the weights they adapt.

    PEFT's merge and unmerge round the live weights; this leaves them alone, so a run that saves and one
    that does not stay bit for bit the same. With several processes all have to call it.
    """
    if not hasattr(model, "get_base_model"):
        return _whole_state(model)
    base = model.get_base_model()
    state = {name: tensor for name, tensor in _whole_state(base).items() if ".lora_" not in name}
    for name, module in base.named_modules():
        if hasattr(module, "get_delta_weight"):
            key = f"{name}.base_layer.weight"
            state[key] = state[key] + whole(module.get_delta_weight(ADAPTER)).to(state[key].dtype)
    return {name.replace(".base_layer.", "."): tensor for name, tensor in state.items()}


def _whole_state(model: nn.Module) -> dict[str, Tensor]:
    """The state with all parts of every tensor; tied parameters stay one tensor under two names."""
    owners: dict[int, str] = {}
    names = {n: owners.setdefault(id(p), n) for n, p in model.named_parameters(remove_duplicate=False)}
    state: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        owner = names.get(name, name)
        state[name] = state[owner] if owner in state else whole(tensor)
    return state


def _load_causal(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device)


def _with_lora(model: Any, spec: TrainingRunSpec, *, purpose: str) -> Any:
    """LoRA adapters with weights seeded by the run; the adapted model starts equal to the plain one."""
    from peft import LoraConfig, get_peft_model

    lora = spec.model.lora
    if lora is None:
        return model
    # PEFT wants its word for all layers as text, and names as a list.
    modules = ALL_LINEAR if lora.target_modules == [ALL_LINEAR] else lora.target_modules
    config = LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, target_modules=modules, lora_dropout=0.0, bias="none"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seeded(spec.seed, "lora", purpose).initial_seed())
        return get_peft_model(model, config)


def _layers(model: Any) -> tuple[str, ...]:
    """Class names of the blocks that transformers never splits: what FSDP gathers at a time."""
    return tuple(model._no_split_modules or ())


def _zero_head(hidden_size: int) -> nn.Linear:
    head = nn.Linear(hidden_size, 1)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


def _at(states: Tensor, positions: Tensor) -> Tensor:
    """Rows of [B, L, H] at [B, T] -> [B, T, H]."""
    return states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))
