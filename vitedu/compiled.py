"""Linear layers, attention and GELU for a compiled step on a CPU; torch.compile's own are slow.

Role: ``linear``, ``attend`` and ``gelu``, which ``fast`` calls while torch.compile translates a
model for a CPU. Results and gradients are those of the plain forms to rounding. Not here:
everything that is not compiled.

What costs the compiler time, and what stands here in its place:

* A gradient of q, k and v is a sum of three tensors that are mostly 0, and k's arrives transposed:
  ``Attend`` gives each as the next layer reads it.
* The gradient of a bias adds thousands of rows with one stride over all of them: ``Linear`` adds
  the tokens of an image first.
* GELU's erf and exp take longer than memory takes to bring their numbers: ``Gelu`` is a polynomial,
  in bfloat16 only, whose rounding is ten times its error.
* In float32 the compiler moves a convolution's tensors to another order: ``product`` hides it.

Legend: B batch, T tokens, D features, D' features of the result, nh heads, hd head_dim.
"""

import numpy as np
import torch
import torch.nn.functional as F

LIMIT = 4.4  # beyond it GELU is x or 0, to a ten-thousandth
NUM_TERMS = 10  # of each polynomial

# --- linear layers ----------------------------------------------------------------------------


@torch.library.custom_op("vitedu::product", mutates_args=())
def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Multiply tokens (B, T, D) by a weight (D', D) as a convolution of kernel one: (B, T, D')."""
    pixels = x.contiguous().transpose(1, 2).unsqueeze(2)  # (B, T, D) -> (B, D, 1, T)
    y = F.conv2d(pixels, weight[:, :, None, None])
    return y.squeeze(2).transpose(1, 2).contiguous()  # (B, D', 1, T) -> (B, T, D')


@product.register_fake
def _(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty(*x.shape[:-1], len(weight))


class Linear(torch.autograd.Function):
    """``F.linear`` for tokens (B, T, D); ``by_convolution``: products by oneDNN in float32 too."""

    @staticmethod
    def forward(ctx, x, weight, bias, by_convolution: bool):
        """Map tokens (B, T, D) to (B, T, D')."""
        ctx.dtype, weight = weight.dtype, weight.to(x.dtype)
        ctx.save_for_backward(x, weight)
        ctx.multiply = product if by_convolution else F.linear
        y = ctx.multiply(x, weight)
        return y if bias is None else y + bias.to(y.dtype)

    @staticmethod
    def backward(ctx, dy):
        """Return the gradients of tokens, weight and bias."""
        x, weight = ctx.saved_tensors
        rows, columns = dy.flatten(0, 1), x.flatten(0, 1)  # (B T, D') and (B T, D)
        # the wider one first: its rows are many enough for the product to hide their transposing
        d_weight = rows.T @ columns if rows.shape[1] >= columns.shape[1] else (columns.T @ rows).T
        d_bias = None
        if ctx.needs_input_grad[2]:
            d_bias = dy.sum(1, dtype=ctx.dtype).sum(0)  # (B, T, D') -> (B, D') -> (D',)
        return ctx.multiply(dy, weight.T), d_weight.to(ctx.dtype), d_bias, None


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, by_convolution: bool = False
) -> torch.Tensor:
    """Apply a linear layer to tokens, in the type that autocast asks for.

    Args:
        x: tokens (B, T, D).
        weight: (D', D), float32.
        bias: (D',), float32, or None.
        by_convolution: multiply as a convolution does, for float32.

    Returns:
        (B, T, D').
    """
    if torch.is_autocast_enabled("cpu"):
        x = x.to(torch.get_autocast_dtype("cpu"))
    return Linear.apply(x, weight, bias, by_convolution)


# --- attention --------------------------------------------------------------------------------


class Attend(torch.autograd.Function):
    """Attention of scaled queries, keys, values, each (G, T, hd) for G pairs of image and head."""

    @staticmethod
    def forward(ctx, q, k, v):
        """Return what every token reads, (G, T, hd)."""
        weights = (q @ k.mT).softmax(dim=-1, dtype=torch.float32).to(v.dtype)  # (G, T, T)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, dy):
        """Return the gradients of q, k and v."""
        q, k, v, weights = ctx.saved_tensors
        d_weights, float_weights = (dy @ v.mT).float(), weights.float()
        mean = (d_weights * float_weights).sum(dim=-1, keepdim=True)
        d_scores = (float_weights * (d_weights - mean)).to(q.dtype)  # (G, T, T)
        return d_scores @ k, d_scores.mT @ q, weights.mT @ dy


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Let every token read: queries, keys and values (B, nh, T, hd) to (B, nh, T, hd)."""
    q = q / q.shape[-1] ** 0.5
    q_k_v = (part.flatten(0, 1) for part in (q, k, v))  # (B, nh, T, hd) -> (G, T, hd)
    return Attend.apply(*q_k_v).view(v.shape)


# --- GELU -------------------------------------------------------------------------------------


def odd_polynomial(function) -> list[float]:
    """Fit ``x (c0 + c1 x^2 + c2 x^4 + ...)`` to an odd function on ``[-LIMIT, LIMIT]``."""
    x = np.linspace(0, LIMIT, 2002)[1:]
    y = function(torch.from_numpy(x)).numpy()
    fit = np.polynomial.Chebyshev.fit(x * x, y / x, NUM_TERMS - 1, w=x)
    return fit.convert(kind=np.polynomial.Polynomial).coef.tolist()


def evaluate(coefficients: list[float], x: torch.Tensor) -> torch.Tensor:
    """Return 0.5 and the odd polynomial of x, which stays constant beyond LIMIT."""
    x = x.clamp(-LIMIT, LIMIT)
    square, total = x * x, torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return 0.5 + x * total


def normal_probability(x: torch.Tensor) -> torch.Tensor:
    """Return Phi(x) - 0.5."""
    return 0.5 * torch.erf(x / 2**0.5)


PROBABILITY = odd_polynomial(normal_probability)  # GELU over x, less 0.5
SLOPE = odd_polynomial(  # the derivative of GELU, less 0.5
    lambda x: normal_probability(x) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5
)


class Gelu(torch.autograd.Function):
    """GELU and its derivative as polynomials: within 1e-4 and 3e-4 for every x from -8 to 8."""

    @staticmethod
    def forward(ctx, x):
        """Apply it to any shape."""
        ctx.save_for_backward(x)
        wide = x.float()
        return (wide * evaluate(PROBABILITY, wide)).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        """Return the gradient of x."""
        (x,) = ctx.saved_tensors
        return (dy.float() * evaluate(SLOPE, x.float())).to(x.dtype)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Apply GELU, in bfloat16 by a polynomial that is closer to it than bfloat16's rounding."""
    return Gelu.apply(x) if x.dtype is torch.bfloat16 else F.gelu(x)
