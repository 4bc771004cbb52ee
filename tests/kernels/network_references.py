"""The network kernels as plain loops over links, in float64, a link at a time."""

import torch

FULL32, FULL64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def splitmix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & FULL64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & FULL64
    return x ^ (x >> 31)


def kept(seed, link, channel, rate):
    """Whether a channel of a link is kept, in Python's own integers."""
    folded = splitmix64((seed + 0x9E3779B97F4A7C15) & FULL64)
    key = splitmix64((folded + (link + 1) * 0x9E3779B97F4A7C15) & FULL64)
    block, place = divmod(channel, 32)
    half, word = divmod(place, 16)
    x = ((16 * block + word + 1) * 0x9E3779B9) & FULL32
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & FULL32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & FULL32
    pattern = x ^ (x >> 16)
    x = ((pattern ^ (key & FULL32)) * 0x7FEB352D) & FULL32
    x = ((x ^ (x >> 15) ^ (key >> 32)) * 0x846CA68B) & FULL32
    x ^= x >> 16
    return (x >> 16 if half else x & 0xFFFF) >= round(rate * 65536)


def dropped(s, seed, link, rate):
    keep = 1 - round(rate * 65536) / 65536
    return s * torch.tensor([kept(seed, link, c, rate) / keep for c in range(len(s))], dtype=s.dtype)


def normed(u, weight, bias, eps):
    if weight is None:
        return u
    mean = u.sum() / len(u)
    variance = ((u - mean) ** 2).sum() / len(u)
    return weight * (u - mean) / torch.sqrt(variance + eps) + (0 if bias is None else bias)


def activated(z, activation):
    return torch.where(z > 0, z, torch.zeros_like(z)) if activation == "relu" else z


def list_links(links):
    """(row, column, number) of every link."""
    ptr, column = links.row_ptr.tolist(), links.row_column.tolist()
    number = range(len(column)) if links.row_link is None else links.row_link.tolist()
    return [(r, column[k], number[k]) for r in range(links.num_rows) for k in range(ptr[r], ptr[r + 1])]


def gather_sum(x, links, weight=None, mean=False):
    rows = [torch.zeros_like(x[0]) if len(x) else x.new_zeros(x.shape[1]) for _ in range(links.num_rows)]
    for r, s, k in list_links(links):
        share = x[s] if weight is None else weight[k] * x[s]
        rows[r] = rows[r] + (share / int(links.row_ptr[r + 1] - links.row_ptr[r]) if mean else share)
    return torch.stack(rows) if rows else x.new_zeros(0, x.shape[1])


def pair_sum(
    a,
    b,
    links,
    bias=None,
    moments=None,
    activation="relu",
    norm_weight=None,
    norm_bias=None,
    norm_eps=1e-5,
    dropout=0.0,
    seed=0,
    weight=None,
    mean=False,
):
    rows = [a.new_zeros(a.shape[1]) for _ in range(links.num_rows)]
    for r, s, k in list_links(links):
        z = a[r] + b[s]
        if moments is not None:
            m = moments
            spread = m.q_row[r] + m.q_column[s] + m.kappa * (m.mu_row[r] - m.mu_column[s]) ** 2 + m.eps
            z = z / torch.sqrt(spread)
        z = z if bias is None else z + bias
        message = normed(activated(z, activation), norm_weight, norm_bias, norm_eps)
        message = dropped(message, seed, k, dropout) if dropout else message
        message = message / int(links.row_ptr[r + 1] - links.row_ptr[r]) if mean else message
        rows[r] = rows[r] + (message if weight is None else weight[k] * message)
    return torch.stack(rows) if rows else a.new_zeros(a.shape)


def row_activation(x, activation="relu", norm_weight=None, norm_bias=None, norm_eps=1e-5, dropout=0.0, seed=0):
    rows = [normed(activated(row, activation), norm_weight, norm_bias, norm_eps) for row in x]
    rows = [dropped(row, seed, r, dropout) if dropout else row for r, row in enumerate(rows)]
    return torch.stack(rows) if rows else x.new_zeros(x.shape)
