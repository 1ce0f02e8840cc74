"""Operations that torch computes in one piece, written out so that each part can be followed."""

import types
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError


def _unguarded(function: Any) -> Any:
    """Return a Python function of torch that does not hand itself to the mode again."""
    names = dict(function.__globals__)
    for guard in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        names[guard] = lambda *_: False
    again = types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    again.__kwdefaults__ = function.__kwdefaults__
    return again


def backward(total: Tensor, one: Tensor) -> None:
    """Run a backward pass within the mode: a checkpoint must find it in force."""
    engine: Any = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (total,), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _lstm_step(gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    enter, forget, cell, out = gates.chunk(4, -1)
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(cell)
    return torch.sigmoid(out) * torch.tanh(memory), memory


def _gru_step(inner: Tensor, hidden: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    reset, update, new = inner.chunk(3, -1)
    reset_h, update_h, new_h = hidden.chunk(3, -1)
    gate = torch.sigmoid(update + update_h)
    proposal = torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h)
    return ((1 - gate) * proposal + gate * state[0],)


def _advance(
    kind: str, inner: Tensor, hidden: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    if kind == "lstm":
        return _lstm_step(inner + hidden, state)
    if kind == "gru":
        return _gru_step(inner, hidden, state)
    return ((torch.tanh if kind == "rnn_tanh" else torch.relu)(inner + hidden),)


def _run(
    kind: str, x: Tensor, state: tuple[Tensor, ...], weights: tuple[Any, ...], reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one layer in one direction over (time, batch, features)."""
    from_input, from_state, input_bias, state_bias, *projection = weights
    inner = F.linear(x, from_input, input_bias)
    outs = []
    steps = list(inner.unbind(0))
    for step in reversed(steps) if reverse else steps:
        state = _advance(kind, step, F.linear(state[0], from_state, state_bias), state)
        if projection:
            state = (F.linear(state[0], projection[0]), *state[1:])
        outs.append(state[0])
    return torch.stack(outs[::-1] if reverse else outs), state


def _recurrent(kind: str) -> Any:
    def expanded(x: Tensor, hidden: Any, weights: Any, *settings: Any) -> Any:
        if isinstance(hidden, Tensor) and not hidden.is_floating_point():  # sizes of batches
            raise ParameterError(
                "packed sequences are not handled: a batch of them has no fixed place for an "
                "example, since the lengths of all of them decide where its steps are. Pad the "
                "sequences to one length and mask the loss.",
                parameter="model",
            )
        has_biases, layers, dropout, train, bidirectional, batch_first = settings
        states = tuple(hidden) if isinstance(hidden, (list, tuple)) else (hidden,)
        x = x.transpose(0, 1) if batch_first else x
        directions = 2 if bidirectional else 1
        each = len(weights) // (layers * directions)
        lasts: list[tuple[Tensor, ...]] = []
        for layer in range(layers):
            outs = []
            for direction in range(directions):
                place = layer * directions + direction
                own = list(weights[place * each : (place + 1) * each])
                if not has_biases:
                    own[2:2] = [None, None]
                out, last = _run(
                    kind, x, tuple(s[place] for s in states), tuple(own), direction == 1
                )
                outs.append(out)
                lasts.append(last)
            x = torch.cat(outs, -1) if directions == 2 else outs[0]
            if dropout and train and layer < layers - 1:
                x = F.dropout(x, dropout, training=True)
        x = x.transpose(0, 1) if batch_first else x
        return (x, *(torch.stack(parts) for parts in zip(*lasts, strict=True)))

    return expanded


def _cell(kind: str) -> Any:
    def expanded(
        x: Tensor,
        hidden: Any,
        from_input: Tensor,
        from_state: Tensor,
        input_bias: Tensor | None = None,
        state_bias: Tensor | None = None,
    ) -> Any:
        state = tuple(hidden) if isinstance(hidden, (list, tuple)) else (hidden,)
        inner = F.linear(x, from_input, input_bias)
        after = _advance(kind, inner, F.linear(state[0], from_state, state_bias), state)
        return after if kind == "lstm" else after[0]

    return expanded


def _iterated(tensor: Tensor) -> Any:
    return iter(tensor.unbind(0))


def _emptied(like: Any) -> Any:
    """Return what makes zeros: memory that nobody has written holds what others have left."""

    def expanded(*args: Any, memory_format: Any = None, **kwargs: Any) -> Any:
        made = like(*args, **kwargs)
        return made if memory_format is None else made.contiguous(memory_format=memory_format)

    return expanded


EXPANSIONS: dict[Any, Any] = {
    torch.empty: _emptied(torch.zeros),
    torch.empty_like: torch.zeros_like,
    Tensor.new_empty: Tensor.new_zeros,
    Tensor.__iter__: _iterated,
    F.multi_head_attention_forward: _unguarded(F.multi_head_attention_forward),
    torch.lstm: _recurrent("lstm"),
    torch.gru: _recurrent("gru"),
    torch.rnn_tanh: _recurrent("rnn_tanh"),
    torch.rnn_relu: _recurrent("rnn_relu"),
    torch.lstm_cell: _cell("lstm"),
    torch.gru_cell: _cell("gru"),
    torch.rnn_tanh_cell: _cell("rnn_tanh"),
    torch.rnn_relu_cell: _cell("rnn_relu"),
}
